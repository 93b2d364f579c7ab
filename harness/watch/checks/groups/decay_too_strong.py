from __future__ import annotations

from torch.optim import AdamW

from harness.watch.check import Check
from harness.watch.events import StepBegins

MAX_SHARE = 0.05
"""Largest share of a weight that decay may take in one update. By reasoning: what is older than 20 updates has nearly
gone then. Strong decay on purpose, as for grokking, takes a thousandth."""


class DecayTooStrong(Check):
    """Weight decay takes so much of each weight in every update that nothing can be learned against it.

    ## Why is this a bug?
    AdamW multiplies the weights by 1 - lr · weight_decay, whatever the gradients are. At a tenth per update, a
    pretrained model is gone after twenty updates, and the loss stays at the level of guessing, without an error.
    Usually the number was mistyped, is a percentage, or belongs to another option.

    ## What to do
    Give AdamW a weight_decay of 0.01 to 0.1.

    ## When it is right
    A decay of less than a twentieth of the weights per update is not reported, nor are optimizers that add the decay to
    the gradient.

    ## References
    - https://arxiv.org/abs/1711.05101
    """

    needs = "AdamW with weight decay"
    in_windows = "all"

    def on_step_begins(self, event: StepBegins) -> None:
        if not event.sampled or not isinstance(event.optimizer, AdamW):
            return
        for group in event.optimizer.param_groups:
            decay, lr = float(group["weight_decay"]), float(group["lr"])
            self.looked |= decay > 0
            if lr * decay >= MAX_SHARE:
                self.found(
                    expected=f"less than {MAX_SHARE:.0%} of each weight in an update",
                    observed=f"weight_decay={decay:g} at a learning rate of {lr:.3g} takes {min(lr * decay, 1):.0%}",
                    where=self.monitor.optimizers[event.optimizer].made or event.where,
                    update=event.update,
                )
