from __future__ import annotations

from collections.abc import Iterable

from harness.watch.check import Check
from harness.watch.events import End, StepBegins
from harness.watch.facts.gradient_ledger import Contribution, GradientLedger, Window
from harness.watch.facts.lost_gradients import Loss, LostGradients
from harness.watch.monitor import Monitor


class Lost(Check):
    """Gradients that were computed for an update are cleared before the optimizer uses them.

    ## Why is this a bug?
    The backward pass of those rows is wasted: the model never learns from them. If `zero_grad()` comes between
    `backward()` and `step()`, it learns nothing at all; if the last, unfilled window of accumulated micro-batches gets
    no step, the end of every epoch is thrown away.

    ## What to do
    Clear the gradients after optimizer.step(). Where micro-batches are accumulated, make a step for the last window
    too, which the end of the epoch cuts short.

    ## When it is right
    A backward pass is not lost if any optimizer used it: the generator's loss also leaves gradients in the
    discriminator, and the actor's in the critic, and these are cleared. The following are not reported: updates that a
    GradScaler skips; gradients whose norm was measured before they were dropped; losses that are differentiated again
    as part of the update's loss (to balance them by their gradients); parameters that were moved between the backward
    pass and the clearing (SAM and other two-pass methods); gradients that the script reads at any time to make others
    from them (PCGrad, A-GEM, Fisher information); and the gradients of an input (adversarial training).

    ## References
    - https://github.com/huggingface/accelerate/issues/616
    """

    id = "gradients::lost"
    needs = "optimizer step after a backward pass"
    in_windows = "all"
    formerly = ("gradients::not-lost",)

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.gradients, self.losses = monitor.fact(GradientLedger), monitor.fact(LostGradients)

    def on_step_begins(self, event: StepBegins) -> None:
        window = self.gradients.window
        self.looked |= window is not None
        if window is not None and window.empty and window.fresh:
            self._emptied(window, event)
        self._report()

    def on_end(self, event: End) -> None:
        self._report()

    def _report(self) -> None:
        for loss in self.losses.lost:
            self._lost(loss)

    def _lost(self, loss: Loss) -> None:
        lost = len(loss.entries)
        self.found(
            expected="an optimizer step after the backward passes, before their gradients are cleared",
            observed=f"the gradients of {lost} backward pass{'es' * (lost > 1)} were cleared "
            + ("and no step used them" if loss.partly else "before a step could use them"),
            where=loss.where,
            update=loss.update,
            hint=self._hint(loss.entries),
        )

    def _hint(self, entries: Iterable[Contribution]) -> str | None:
        if len(self.gradients.ledgers) < 2:
            return None
        lines = " and ".join(sorted({entry.where for entry in entries if entry.where}))
        return f"Let the optimizer of the loss at {lines} make its step before anything clears the gradients."

    def _emptied(self, window: Window, event: StepBegins) -> None:
        if any(entry.fate.used for entry in window.fresh):
            return  # they were another optimizer's to use
        early = bool(self.monitor.forwards)
        self.found(
            expected="gradients at optimizer.step()",
            observed="all of them are empty: "
            + ("optimizer.step() comes before the backward pass" * early)
            + ("they were cleared between the backward pass and the step" * (not early)),
            where=window.ledger.zeroed or event.where,
            update=event.update,
            hint="Call optimizer.step() after the backward pass of its batch, and zero_grad() after that."
            if early
            else "Move zero_grad() behind optimizer.step(), or in front of the backward pass.",
        )
