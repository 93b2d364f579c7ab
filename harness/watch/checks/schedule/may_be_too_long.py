from __future__ import annotations

from harness.watch.check import Check
from harness.watch.events import End
from harness.watch.facts.scheduler_ledger import NO_SCHEDULER, TOO_SHORT, SchedulerLedger, SchedulerSeen
from harness.watch.monitor import Monitor

MAKES_A_DIFFERENCE = 0.05
"""Smallest share of its peak at which a learning rate that stops there shows that the schedule went on. Neither half
nor double of it changes a verdict of the corpus."""


class MayBeTooLong(Check):
    """The training stops before the learning rate's schedule is over, though the rate is still high.

    ## Why is this a bug?
    The last updates of a schedule use small learning rates, and much of the improvement comes from them. A training run
    that stops halfway keeps the weights of the noisy part, unless it was meant to stop there.

    ## What to do
    Right where the training stops early; otherwise give the scheduler epochs * updates an epoch.

    ## When it is right
    If an evaluation ends the training early (early stopping), the schedule has to be made for the most epochs that it
    may take: you can then ignore this warning. A schedule that has come down to a twentieth of its peak is not
    reported. Without an evaluation between the epochs, this is an error, `schedule::wrong-length`.
    """

    needs = "schedule that can be computed ahead"
    severity = "warning"
    formerly = ("schedule::may-end-early",)
    explains = ("schedule::lr-zero",)

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.schedulers = monitor.fact(SchedulerLedger)

    def lacks(self) -> str:
        if self.schedulers.any_with_end:
            return TOO_SHORT
        return super().lacks() if self.schedulers.any_seen else NO_SCHEDULER

    def on_end(self, event: End) -> None:
        self.looked = self.schedulers.lengths_are_seen
        for seen, stops in self.schedulers.where_observed(self._observed):
            self.found(
                expected=f"a schedule of {seen.planned:.0f} steps",
                observed=stops,
                where=seen.made,
                update=self.monitor.updates_made,
            )

    def _observed(self, seen: SchedulerSeen) -> str | None:
        ledger = self.schedulers
        if not seen.steps or not ledger.evaluated_between or ledger.restored or ledger.counts_other_units(seen):
            return None
        stops = ledger.outlasts_the_training(seen) and seen.stops_at() > MAKES_A_DIFFERENCE
        return seen.stops_early if stops else None
