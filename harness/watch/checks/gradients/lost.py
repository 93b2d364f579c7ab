from __future__ import annotations

from harness.watch.check import Check
from harness.watch.events import BackwardBegins, StepBegins
from harness.watch.facts.gradient_ledger import Cleared, GradientLedger, is_zero
from harness.watch.monitor import Monitor


class Lost(Check):
    """Gradients that were computed for an update are cleared before the optimizer uses them.

    ## Why is this a bug?
    The backward pass of those rows was for nothing: they are never learned from. Where `zero_grad()` stands between
    `backward()` and `step()`, nothing is learned at all; where the last, unfilled window of accumulated micro-batches
    gets no step, the end of every epoch is thrown away.

    ## What to do
    Clear the gradients after optimizer.step(). Where micro-batches are accumulated, make a step for the last window
    too, which the end of the epoch cuts short.

    ## When it is right
    Updates that a GradScaler leaves out, gradients whose norm was measured before they were dropped, and parameters
    that were moved between the backward pass and the clearing (SAM and other methods of two passes) are not reported.

    ## References
    - https://github.com/huggingface/accelerate/issues/616
    """

    id = "gradients::lost"
    needs = "optimizer step after a backward pass"
    formerly = ("gradients::not-lost",)

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.gradients = monitor.fact(GradientLedger)

    def on_backward_begins(self, event: BackwardBegins) -> None:
        for cleared in self.gradients.cleared:
            self._look_at(cleared, event)

    def _look_at(self, cleared: Cleared, event: BackwardBegins) -> None:
        lost = cleared.lost
        perturbed = any(entry.versions != cleared.ledger.versions for entry in lost)
        if not lost or perturbed or cleared.clipped is not None:  # who measures the norm may leave an update out
            return
        used = any(entry.used for entry in cleared.entries)
        self.found(
            expected="an optimizer step after the backward passes, before their gradients are cleared",
            observed=f"the gradients of {len(lost)} backward pass{'es' * (len(lost) > 1)} were cleared "
            + ("and no step used them" if used else "before a step could use them"),
            where=cleared.ledger.zeroed or lost[-1].where or event.where,
            update=self.monitor.update,
        )

    def on_step_begins(self, event: StepBegins) -> None:
        window = self.gradients.window
        self.looked |= window is not None
        if window is None or not window.empty or not window.fresh:
            return
        if all(is_zero(gradient) for gradient in window.ledger.after):
            return
        self.found(
            expected="gradients at optimizer.step()",
            observed="all of them are empty: they were cleared between the backward pass and the step",
            where=window.ledger.zeroed or event.where,
            update=event.update,
            hint="Move zero_grad() behind optimizer.step(), or in front of the backward pass.",
        )
