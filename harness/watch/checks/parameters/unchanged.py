from __future__ import annotations

from harness.watch.check import Check
from harness.watch.events import Step
from harness.watch.facts.parameters import Parameters
from harness.watch.facts.tensor_updates import TensorUpdates
from harness.watch.monitor import Monitor


class Unchanged(Check):
    """Parameters with a gradient and a learning rate are the same after the optimizer's step.

    ## Why is this a bug?
    If something that does nothing replaces `optimizer.step()`, or something sets the parameters back within the step,
    the model stays as it was.

    ## What to do
    Look at what replaces or wraps optimizer.step(), and at what sets the parameters back.

    ## When it is right
    A learning rate so small that a float32 number does not change by it, as in the first step of a warmup, is not
    reported. Neither are updates that a GradScaler skips.
    """

    needs = "update with a gradient and a learning rate"
    in_windows = "all"
    formerly = ("effect::parameters-change",)
    explains = ("gradients::lost", "optimizer::missing-parameters")

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.updates = monitor.fact(TensorUpdates)
        self.parameters = monitor.fact(Parameters)

    def on_step(self, event: Step) -> None:
        for each in self.updates.seen:
            self.looked |= each.due
            if each.due and not each.changed:
                self.found(
                    expected=f"a change, with a gradient and a learning rate of {each.lr:.3g}",
                    observed=f"{self.parameters.name_of(each.tensor)} is the same after the step",
                    where=event.where,
                    update=event.update,
                )
