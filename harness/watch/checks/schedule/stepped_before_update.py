from __future__ import annotations

from harness.watch.check import Check
from harness.watch.events import End
from harness.watch.facts.scheduler_ledger import SchedulerLedger
from harness.watch.monitor import Monitor


class SteppedBeforeUpdate(Check):
    """The scheduler is stepped before the optimizer, so that the schedule's first learning rate is never used.

    ## Why is this a bug?
    A scheduler sets its first learning rate when it is made. If it is stepped before the first update, it moves on to
    the second, and every update uses the learning rate of the next one; the last update uses the final learning rate,
    usually 0.

    ## What to do
    Call scheduler.step() after optimizer.step(), once for each update or each epoch, in the unit that its length is
    given in.

    ## When it is right
    A scheduler that was stepped several times before the first update, as when a training is resumed by hand, is not
    reported.

    ## References
    - https://docs.pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate
    """

    needs = "learning rate scheduler"
    formerly = ("schedule::after-the-update",)
    explains = (
        "schedule::lr-zero",
        "schedule::rates-for-factors",
        "schedule::warmup-never-ends",
        "schedule::decays-too-fast",
        "schedule::stepped-in-wrong-unit",
        "schedule::wrong-length",
        "schedule::may-be-too-long",
    )

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.schedulers = monitor.fact(SchedulerLedger)

    def on_end(self, event: End) -> None:
        self.looked = self.schedulers.any_seen
        for seen in self.schedulers.driving:
            if seen.stepped_first:
                self.found(
                    expected="optimizer.step() before scheduler.step()",
                    observed="the scheduler was stepped before the first update, which skips its first value",
                    where=seen.where,
                    update=1,
                )
