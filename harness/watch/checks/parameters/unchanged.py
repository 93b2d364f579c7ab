from __future__ import annotations

from harness.torch_objects import held_by
from harness.watch.check import Check
from harness.watch.events import Backward, End, Step, StepBegins
from harness.watch.facts.tensor_updates import TensorUpdates
from harness.watch.monitor import Monitor

WITHOUT_STEP = 4
"""Backward passes without a single optimizer step from which on that is no accident. A guess."""


class Unchanged(Check):
    """Parameters with a gradient and a learning rate stay as they are: no step changes them.

    ## Why is this a bug?
    Gradients change nothing by themselves. Where `optimizer.step()` is missing or replaced, where the optimizer holds
    only what is frozen, or where something sets the parameters back within the step, the model stays what it was.

    ## What to do
    Look at what replaces or wraps optimizer.step(), and at what sets the parameters back.

    ## When it is right
    A learning rate so small that a float32 number does not change by it, as in the first step of a warmup, is not
    reported; nor are updates that a GradScaler leaves out, and scripts that only look at gradients a few times.

    ## References
    - https://discuss.pytorch.org/t/84911
    """

    id = "parameters::unchanged"
    needs = "update with a gradient and a learning rate"
    formerly = ("effect::parameters-change",)
    explains = ("gradients::lost", "optimizer::missing-parameters")

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.updates = monitor.fact(TensorUpdates)
        self.backward_passes = 0

    def on_backward(self, event: Backward) -> None:
        self.backward_passes += 1

    def on_step_begins(self, event: StepBegins) -> None:
        held = held_by(event.optimizer) if event.sampled else []
        if held and not any(p.requires_grad for p in held):
            self.found(
                expected="an optimizer with parameters that are trained",
                observed="all that it holds are frozen (requires_grad is False)",
                where=self.monitor.optimizers[event.optimizer].made or event.where,
                update=event.update,
                hint="Give it the parameters that are trained, after freezing the others.",
            )

    def on_step(self, event: Step) -> None:
        for each in self.updates.seen:
            self.looked |= each.due
            if each.due and not each.changed:
                self.found(
                    expected=f"a change, with a gradient and a learning rate of {each.lr:.3g}",
                    observed=f"a tensor of shape {each.shape} is the same after the step",
                    where=event.where,
                    update=event.update,
                )

    def on_end(self, event: End) -> None:
        made_at = self.monitor.optimizer_made_at
        if self.backward_passes >= WITHOUT_STEP and not self.monitor.stepped and made_at:
            self.found(
                expected="a call of optimizer.step() for each update",
                observed=f"{self.backward_passes} backward passes and not one optimizer step",
                where=made_at[-1],
                update=1,
                hint="Call optimizer.step() after the backward pass; where micro-batches are added up, for each full "
                "window.",
            )
