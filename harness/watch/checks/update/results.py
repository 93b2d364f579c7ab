from __future__ import annotations

from harness.watch.check import HELD, NOTHING_TO_JUDGE, Check, Found, Verdict
from harness.watch.checks.update.observations.own_formulas import CORRECTIONS, OwnAdamUsed
from harness.watch.facts.ascent import LossFollowed
from harness.watch.facts.tensor_updates import TensorsUpdated


class Ascends(Check):
    """The updates make the loss larger, because `backward()` is called on its negative.

    ## Why is this a bug?
    An optimizer steps against the gradient of what is differentiated. With the sign reversed, each update makes the
    model worse at its task, quickly and without an error.

    ## What to do
    Remove the minus sign in front of the loss.

    ## When it is right
    A negative objective, such as minus a reward, is reported only if it is the negative of a loss function's value or
    of the batch's cross-entropy. An objective that an optimizer with `maximize=True` climbs is not reported. If other
    updates do go down, those that climb may belong to an adversary, to a Lagrange multiplier or to rows that should be
    unlearned; an optimizer that searches for a model's input, such as an adversarial image, may climb as well.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.optim.AdamW.html
    """

    explains = ("gradients::accumulation-unscaled",)

    def judge(self, fact: LossFollowed) -> Verdict:
        if fact.climbs != "by the loss":
            return HELD
        return Found(
            expected="backward() on the loss itself",
            observed="backward() is called on the negative loss, so each update makes the loss larger",
            update=fact.update,
        )


class NotAsDefined(Check):
    """An update does not follow the optimizer's formula.

    ## Why is this a bug?
    Everyone expects a class called AdamW, or a wrapped step, to do what the paper says. If the moments are not
    corrected, or the weight decay is added to the gradient, every update differs, and the loss still falls.

    ## What to do
    Check what replaces or wraps optimizer.step(), and what changes gradients or state inside it.

    ## When it is right
    The check looks at torch's AdamW, Adam and SGD. A class that derives from the first two and has its own step may
    change the gradients or have another formula. It is reported only if its updates are those of AdamW or Adam with
    moments that are not corrected, or with the decay in the gradient. A script without a torch optimizer is reported if
    its updates are Adam's except for the correction of the moments; without any correction, only if the class is named
    after Adam. Other optimizers are not reported, whatever their formula is. Neither are steps that call a closure, or
    values that change from update to update.

    ## References
    - https://arxiv.org/abs/1711.05101
    - https://docs.pytorch.org/docs/stable/generated/torch.optim.AdamW.html
    """

    needs = "optimizer whose formula is known"

    def judge(self, fact: TensorsUpdated) -> Verdict:
        known = [each for each in fact.tensors if each.as_defined is not None]
        if not known:
            return NOTHING_TO_JUDGE
        faults = {each.fault for each in fact.tensors}
        if any(each.as_defined for each in known) or fact.rounded_away is not None:
            return HELD
        if len(faults) > 1 and len(known) < len(fact.tensors):
            return HELD  # a formula of its own, by which one tensor comes out as a fault would have it
        fault = f": {faults.pop()}" if len(faults) == 1 and None not in faults else ""
        looked = "the tensor looked at was" if len(known) == 1 else f"all {len(known)} tensors looked at were"
        return Found(
            expected=f"the update that {fact.optimizer} computes from its parameter groups",
            observed=f"{looked} updated differently{fault}",
        )

    def judge_own(self, fact: OwnAdamUsed) -> Verdict:
        if fact.fault is None:
            return HELD
        if fact.fault == CORRECTIONS["none"] and not fact.named:
            return NOTHING_TO_JUDGE  # some optimizers leave it out on purpose
        return Found(
            expected=f"Adam's update, with betas {fact.betas[0]} and {fact.betas[1]}",
            observed=f"the first updates are Adam's, but {fact.fault}",
            hint="Divide the first moment by 1 - beta1**step and the second by 1 - beta2**step.",
        )


class RoundedAway(Check):
    """Updates are rounded away, because the parameters have too little precision.

    ## Why is this a bug?
    A bfloat16 number has 8 significant bits: what is added to it is lost if it is smaller than about a 512th of it. At
    fine-tuning learning rates, most changes are that small. Those elements never change, however long the training.

    ## What to do
    Keep the weights in float32 (dtype=torch.float32) and use autocast for the computation.

    transformers 5 loads a checkpoint in the precision that it was saved in, unless `dtype` says otherwise.

    ## When it is right
    Low precision weights whose updates mostly arrive, because the learning rate is large, are not reported. Optimizers
    other than torch's AdamW, Adam and SGD, such as those with stochastic rounding, are not checked.

    ## References
    - https://github.com/huggingface/transformers/issues/42883
    """

    def judge(self, fact: TensorsUpdated) -> Verdict:
        if fact.rounded_away is None:
            return HELD
        dtype = str(fact.tensors[0].dtype).removeprefix("torch.")
        return Found(
            expected="float32 parameters, which can hold small changes",
            observed=f"{fact.rounded_away:.0%} of the elements are unchanged by an update, "
            f"because {dtype} cannot hold such small changes",
        )
