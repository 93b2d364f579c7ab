from __future__ import annotations

from harness.watch.check import Check
from harness.watch.events import End
from harness.watch.facts.scheduler_ledger import NO_SCHEDULER, Fault, SchedulerLedger
from harness.watch.monitor import Monitor


class WrongLength(Check):
    """The learning rate's schedule is over before the training, or the training before the schedule.

    ## Why is this a bug?
    A schedule that is too short leaves the learning rate at its end, mostly 0, for the updates that remain: they change
    nothing, or, where a cosine comes up again, undo what the decay was for. One that is too long stops at a rate that
    is still high. Neither crashes, and the loss curve looks like one of a training that has converged.

    ## What to do
    Make it for epochs * ceil(batches an epoch / accumulated batches) steps, and step it once an update.

    Count the batches of the loader that is trained on (after `accelerator.prepare`, which divides them among
    processes), and not the rows of the dataset. After resuming, go on with the epoch that was not made yet.

    ## When it is right
    Warm restarts and other schedules without an end are not compared with the number of updates. A schedule may be
    over before the training where the rate stays at a floor from then on, such as a tenth of its peak. A training
    that is interrupted or resumes an earlier one may stop before its schedule does, as long as not every epoch is
    left after the same part of the batches that the schedule was made for, and one that a number of updates ends in
    the middle of an epoch is not measured by whole epochs. Where an evaluation may have ended the training early,
    it is the warning `schedule::may-be-too-long`.
    """

    id = "schedule::wrong-length"
    needs = "schedule that can be computed ahead"
    formerly = ("schedule::ends-with-the-training",)
    explains = ("schedule::lr-zero", "rows::epoch-cut-short")

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.schedulers = monitor.fact(SchedulerLedger)

    def lacks(self) -> str:
        return super().lacks() if self.schedulers.any_seen else NO_SCHEDULER

    def on_end(self, event: End) -> None:
        self.looked = self.schedulers.any_with_end
        for verdict in self.schedulers.with_fault(Fault.WRONG_LENGTH):
            self.found(
                expected=verdict.expected_length,
                observed=verdict.observed,
                where=verdict.of.made or verdict.of.where,
                update=verdict.update,
            )
