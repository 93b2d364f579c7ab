from __future__ import annotations

from harness.watch.check import Check
from harness.watch.events import End
from harness.watch.facts.scheduler_ledger import NO_SCHEDULER, Fault, SchedulerLedger
from harness.watch.monitor import Monitor


class WarmupNeverEnds(Check):
    """The training is over before the warmup is: the learning rate never gets to the value that was set.

    ## Why is this a bug?
    The learning rate that was chosen is the peak of the schedule. If the warmup is longer than the training, the rate
    rises from 0 to a part of it and the decay never comes. Two arguments in the wrong order are enough:
    `get_linear_schedule_with_warmup(optimizer, total, warmup)`.

    ## What to do
    Give the warmup in steps, as a small part of all updates.

    ## When it is right
    A training of a few steps, cyclic schedules, and one that resumes or is interrupted are not reported; nor is a rate
    that rises without a peak, or before another optimizer takes over, as in a test of learning rates.
    """

    id = "schedule::warmup-never-ends"
    needs = "schedule that can be computed ahead"
    formerly = ("schedule::warmup-ends",)
    explains = ("schedule::lr-zero",)

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.schedulers = monitor.fact(SchedulerLedger)

    def lacks(self) -> str:
        return super().lacks() if self.schedulers.any_seen else NO_SCHEDULER

    def on_end(self, event: End) -> None:
        self.looked = self.schedulers.any_with_rates
        for verdict in self.schedulers.with_fault(Fault.RISES_ONLY):
            self.found(
                expected="a warmup that is over before the training is",
                observed=verdict.observed,
                where=verdict.of.made,
                update=verdict.update,
            )
