from __future__ import annotations

from harness.watch.check import Check
from harness.watch.events import End
from harness.watch.facts.scheduler_ledger import NO_SCHEDULER, Fault, SchedulerLedger
from harness.watch.monitor import Monitor


class MayBeTooLong(Check):
    """The training stops before the learning rate's schedule is over, though the rate is still high.

    ## Why is this a bug?
    The last updates of a schedule are made with small learning rates, and much of the improvement comes in them. A
    training that stops halfway keeps the weights of the noisy part, unless it was meant to stop there.

    ## What to do
    Right where the training stops early; otherwise give the scheduler epochs * updates an epoch.

    ## When it is right
    Where an evaluation ends the training early (early stopping), the schedule has to be made for the most epochs that
    it may take: then this warning can be ignored. A schedule that has come down to a twentieth of its peak is not
    reported. Without an evaluation between the epochs it is an error, `schedule::wrong-length`.
    """

    id = "schedule::may-be-too-long"
    needs = "schedule that can be computed ahead"
    severity = "warning"
    formerly = ("schedule::may-end-early",)
    explains = ("schedule::lr-zero",)

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.schedulers = monitor.fact(SchedulerLedger)

    def lacks(self) -> str:
        return super().lacks() if self.schedulers.any_seen else NO_SCHEDULER

    def on_end(self, event: End) -> None:
        self.looked = self.schedulers.any_with_end
        for verdict in self.schedulers.with_fault(Fault.TOO_LONG_UNLESS_STOPPED):
            self.found(
                expected=f"a schedule of {verdict.of.planned:.0f} steps",
                observed=verdict.observed,
                where=verdict.of.made,
                update=verdict.update,
            )
