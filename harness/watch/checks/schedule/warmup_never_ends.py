from __future__ import annotations

from harness.watch.check import Check
from harness.watch.events import End, TrainerMade
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
        self.asked: tuple[str, float] | None = None
        """The argument that a Trainer was given, and its value."""

    def on_trainer_made(self, event: TrainerMade) -> None:
        given = ((name, getattr(event.trainer.args, name, 0)) for name in ("warmup_steps", "warmup_ratio"))
        self.asked = next((each for each in given if each[1]), None)

    def lacks(self) -> str:
        return super().lacks() if self.schedulers.any_seen else NO_SCHEDULER

    def on_end(self, event: End) -> None:
        self.looked = self.schedulers.any_with_rates
        for verdict in self.schedulers.with_fault(Fault.RISES_ONLY):
            asked = f"{self.asked[0]}={self.asked[1]}" if self.asked is not None else None
            self.found(
                expected="a warmup that is over before the training is",
                observed=verdict.observed
                if asked is None
                else f"{asked} in {verdict.of.planned_steps} updates; " + verdict.observed.partition(": ")[2],
                where=(self.asked and self.monitor.locator.argument(self.asked[0])) or verdict.of.made,
                update=verdict.update,
                hint=None if asked is None else f"Make {asked} a small part of the {verdict.of.planned_steps} updates.",
            )
