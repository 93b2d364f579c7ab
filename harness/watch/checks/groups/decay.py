from __future__ import annotations

from torch.optim import AdamW

from harness.watch.check import HELD, NOTHING_TO_JUDGE, Check, Found, Verdict
from harness.watch.checks.groups.observations.exempt_from_decay import DecayExempted
from harness.watch.events import StepBegins

MAX_SHARE = 0.05
"""Largest share of a weight that decay may take in one update. By reasoning: what is older than 20 updates has nearly
gone then. Strong decay on purpose, as for grokking, takes a thousandth."""


class DecayNotExempt(Check):
    """Some parameters are exempt from weight decay, but biases or normalisation weights are still decayed.

    ## Why is this a bug?
    The usual exemption goes by name, and a name that matches nothing exempts nothing: `gamma` and `beta` were the names
    in TensorFlow's BERT, and in other architectures the layers are not called `LayerNorm`. Parameters that were meant
    to be left alone are pulled towards 0, including normalisation weights, which belong near 1.

    ## What to do
    Select normalisation weights by module type (nn.LayerNorm) and biases by name, because the names of normalisation
    layers differ between architectures. Ignore this if you meant to decay them.

    ## When it is right
    An optimizer that decays everything, or nothing, is not reported, nor is one that exempts whole modules such as a
    head. Ignore the warning if you meant to decay biases or normalisation weights.

    ## References
    - https://github.com/huggingface/transformers/issues/8396
    - https://github.com/huggingface/transformers/issues/42769
    """

    severity = "warning"

    def judge(self, fact: DecayExempted) -> Verdict:
        if not fact.decayed:
            return HELD
        first, others = fact.decayed[0], len(fact.decayed) - 1
        return Found(
            expected="biases and normalisation weights in the group without weight decay",
            observed=f"{first} and {others} more are decayed" if others else f"{first} is decayed",
            update=1,
        )


class DecayTooStrong(Check):
    """Weight decay shrinks the weights so much in every update that the model cannot learn.

    ## Why is this a bug?
    AdamW multiplies the weights by 1 - lr · weight_decay, whatever the gradients are. At a tenth per update, a
    pretrained model is gone after twenty updates, and the loss stays at the level of guessing, without an error.
    Usually the number was mistyped, is a percentage, or belongs to another option.

    ## What to do
    Set AdamW's weight_decay to 0.01 to 0.1.

    ## When it is right
    A decay of less than a twentieth of the weights per update is not reported, nor are optimizers that add the decay to
    the gradient.

    ## References
    - https://arxiv.org/abs/1711.05101
    """

    needs = "AdamW with weight decay"
    in_windows = "all"

    def judge(self, step: StepBegins) -> Verdict:
        if not step.sampled or not isinstance(step.optimizer, AdamW):
            return NOTHING_TO_JUDGE
        taken = [(float(group["lr"]), float(group["weight_decay"])) for group in step.optimizer.param_groups]
        if not any(decay > 0 for _, decay in taken):
            return NOTHING_TO_JUDGE
        for lr, decay in taken:
            if lr * decay >= MAX_SHARE:
                return Found(
                    expected=f"a decay below {MAX_SHARE:.0%} of each weight in an update",
                    observed=f"weight_decay={decay:g} at a learning rate of {lr:.3g} takes {min(lr * decay, 1):.0%} "
                    "of each weight in an update",
                    where=step.made,
                )
        return HELD
