from __future__ import annotations

from harness.watch.check import Check
from harness.watch.events import StepBegins
from harness.watch.facts.gradient_ledger import GradientLedger
from harness.watch.monitor import Monitor


class NotCleared(Check):
    """Gradients of an earlier update are still in those that an optimizer step uses.

    ## Why is this a bug?
    `backward()` adds to `.grad`. Without `zero_grad()`, update n uses the sum of n batches' gradients: the steps grow
    and keep pointing where the first batches pointed. The loss still falls for a while.

    ## What to do
    Call optimizer.zero_grad() once for each update: after optimizer.step(), or before the first backward pass of the
    next one.

    ## When it is right
    Accumulating micro-batches is not reported: the backward passes since the last optimizer step are one window.
    Neither are the several backward passes of an optimizer that calls its closure more than once (LBFGS).

    ## References
    - https://stackoverflow.com/q/60335387
    """

    id = "gradients::not-cleared"
    needs = "second update"
    in_windows = "all"
    formerly = ("gradients::cleared-between-updates",)

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.gradients = monitor.fact(GradientLedger)

    def on_step_begins(self, event: StepBegins) -> None:
        window = self.gradients.window
        self.looked |= event.number > 1 and window is not None and not window.empty
        if window is None or window.empty or not window.stale:
            return
        used = window.stale[-1].used
        self.found(
            expected=f"the gradients of the backward passes since update {used}",
            observed=f"those of update {used} are still in them"
            + ("" if window.fresh else "; there was no backward pass since"),
            where=event.where,
            update=event.update,
        )
