from __future__ import annotations

from harness.watch.check import Check
from harness.watch.events import Step
from harness.watch.facts.tensor_updates import TensorUpdates
from harness.watch.monitor import Monitor


class NotAsDefined(Check):
    """An update is not what the optimizer's formula makes of its gradients.

    ## Why is this a bug?
    Everyone expects a class called AdamW, or a wrapped step, to do what the paper says. If the moments are not
    corrected, or the weight decay is added to the gradient, every update differs, and the loss still falls.

    ## What to do
    Look at what replaces or wraps optimizer.step(), and what changes gradients or state within it.

    ## When it is right
    The check looks at torch's AdamW, Adam and SGD. A class that derives from the first two and has a step of its own
    may change the gradients or have another formula: it is reported only if its updates are those of AdamW or Adam with
    moments that are not corrected, or with the decay in the gradient. Other optimizers are not reported, whatever their
    formula is. Neither are steps that call a closure, or values that change from update to update.

    ## References
    - https://arxiv.org/abs/1711.05101
    - https://docs.pytorch.org/docs/stable/generated/torch.optim.AdamW.html
    """

    needs = "optimizer whose formula is known"
    in_windows = "all"
    formerly = ("update::as-the-optimizer-defines",)

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.updates = monitor.fact(TensorUpdates)

    def on_step(self, event: Step) -> None:
        seen = self.updates.seen
        known = [each for each in seen if each.as_defined is not None]
        self.looked |= bool(known)
        if not known or any(each.as_defined for each in known) or self.updates.rounded_away is not None:
            return
        faults = {each.fault for each in seen}
        if len(faults) > 1 and len(known) < len(seen):
            return  # a formula of its own, by which one tensor comes out as a fault would have it
        fault = f": {faults.pop()}" if len(faults) == 1 and None not in faults else ""
        self.found(
            expected=f"the update of {type(event.optimizer).__name__} with the values in its parameter groups",
            observed=f"all {len(known)} tensors that were looked at came out otherwise{fault}",
            where=event.where,
            update=event.update,
        )
