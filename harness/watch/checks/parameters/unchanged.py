from __future__ import annotations

from collections.abc import Hashable

from torch import nn

from harness.torch_objects import held_by
from harness.watch.check import Check
from harness.watch.events import Backward, End, Step, StepBegins
from harness.watch.facts.gradient_ledger import rows_of
from harness.watch.facts.parameters import Parameters
from harness.watch.facts.tensor_updates import TensorUpdates
from harness.watch.monitor import Monitor

WITHOUT_STEP = 4
"""Backward passes without a single optimizer step from which on that is no accident. A guess."""

MIN_CLEARED = 16
"""Calls of an optimizer's zero_grad without a step of it from which on a step is missing. A guess: an optimizer that
steps once in several batches does so within these."""


class Unchanged(Check):
    """Parameters with a gradient and a learning rate stay as they are: no step changes them.

    ## Why is this a bug?
    Gradients change nothing by themselves. Where `optimizer.step()` is missing or replaced, where the optimizer holds
    only what is frozen, or where something sets the parameters back within the step, the model stays what it was.

    ## What to do
    Look at what replaces or wraps optimizer.step(), and at what sets the parameters back.

    ## When it is right
    A learning rate so small that a float32 number does not change by it, as in the first step of a warmup, is not
    reported; nor are updates that a GradScaler leaves out, scripts that only look at gradients a few times, and updates
    that are written by hand, as long as they change something. An optimizer of a part that is frozen is reported only
    where no optimizer has anything to change in the whole training: parts may be unfrozen later, one after the other.
    A script without any optimizer is reported only where it goes through the same rows again, in training mode, and
    the gradients of no input are computed: then nothing but an update that changes nothing can be meant.

    ## References
    - https://discuss.pytorch.org/t/84911
    """

    id = "parameters::unchanged"
    needs = "update with a gradient and a learning rate"
    in_windows = "all"
    formerly = ("effect::parameters-change",)
    explains = ("gradients::lost", "optimizer::missing-parameters")

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.updates = monitor.fact(TensorUpdates)
        self.parameters = monitor.fact(Parameters)
        self.backward_passes = 0
        self.first_rows: Hashable = None
        """What the first backward pass was of."""
        self.again: str | None = None
        """Where the same rows were gone through once more, without any optimizer."""
        self.of_inputs = False
        """Whether gradients of inputs are computed, and not only those of parameters."""
        self.frozen: tuple[str | None, int] | None = None
        """The first optimizer that stepped with nothing to change: where it was made, and in which update."""
        self.trains = False
        """Whether any optimizer stepped with something to change."""

    def on_backward(self, event: Backward) -> None:
        self.backward_passes += 1
        if not self.monitor.optimizer_made_at and not self.monitor.stepped and not self.of_inputs:
            self._without_optimizer(event)

    def _without_optimizer(self, event: Backward) -> None:
        self.of_inputs = any(t.requires_grad for f in event.forwards for t in f.tensors.values())
        reached = [forward.model for forward in event.forwards if forward.number in event.reached]
        rows = rows_of(event)
        known = self.first_rows == rows or (event.batch is not None and event.batch.of.number > 1)
        self.first_rows = self.first_rows or rows
        if self.backward_passes >= WITHOUT_STEP and known and any(_has_gradients(m) for m in reached if m.training):
            self.again = event.where

    def on_step_begins(self, event: StepBegins) -> None:
        if self.trains:
            return
        held = held_by(event.optimizer)
        self.trains = any(p.requires_grad or p.grad is not None for p in held)
        if held and not self.trains and self.frozen is None:
            self.frozen = self.monitor.optimizers[event.optimizer].made or event.where, event.update

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

    def on_end(self, event: End) -> None:
        made_at = self.monitor.optimizer_made_at
        if self.monitor.stepped:
            self._all_frozen()
            self._one_of_several()
        elif self.parameters.by_hand:
            return
        elif self.again is not None and not self.of_inputs and not made_at:
            self.found(
                expected="parameters that change between two backward passes of the same rows",
                observed=f"after {self.backward_passes} backward passes they are what they were, and no optimizer was "
                "made",
                where=self.again,
                update=1,
                hint="Write an update by hand into the parameter itself, under no_grad(): p -= lr * p.grad. "
                "p = p - lr * p.grad only gives another tensor the name p.",
            )
        elif self.backward_passes >= WITHOUT_STEP and made_at:
            self.found(
                expected="a call of optimizer.step() for each update",
                observed=f"{self.backward_passes} backward passes and not one optimizer step",
                where=made_at[-1],
                update=1,
                hint="Call optimizer.step() after the backward pass; where micro-batches are added up, for each full "
                "window.",
            )

    def _all_frozen(self) -> None:
        """Parts that are frozen for some epochs, or beside others that are trained, have optimizers that wait."""
        if self.frozen is None or self.trains or not self.monitor.complete or self.parameters.by_hand:
            return
        where, update = self.frozen
        self.found(
            expected="an optimizer with parameters that are trained",
            observed="all that it holds are frozen (requires_grad is False)",
            where=where,
            update=update,
            hint="Give it the parameters that are trained, after freezing the others.",
        )

    def _one_of_several(self) -> None:
        """An optimizer that takes part in the loop and makes no step, while others do."""
        seen = self.parameters
        updated = {each for held in seen.optimizers if held.stepped for each in held.all}
        for held in seen.optimizers:
            unused = not held.stepped and held.cleared >= MIN_CLEARED and held.reached and not updated & held.all
            if unused and self.monitor.complete and not seen.by_hand:
                self.found(
                    expected="a call of step() for every optimizer whose gradients are cleared in the loop",
                    observed=f"this one made none, and nothing changes {seen.shown(held.all)}",
                    where=held.made,
                    update=1,
                    hint="Call its step() after the backward pass of its loss.",
                )


def _has_gradients(model: nn.Module) -> bool:
    return any(p.grad is not None and bool(p.grad.any()) for p in model.parameters())
