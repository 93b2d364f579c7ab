from __future__ import annotations

import itertools
import math

from harness.watch.check import Check
from harness.watch.events import End, TrainerMade
from harness.watch.facts.scheduler_ledger import FEWEST_STEPS, NO_SCHEDULER, SchedulerLedger, SchedulerSeen
from harness.watch.monitor import Monitor

MOMENTS = 11
"""Moments of the training, evenly over it, at each of which the learning rate must be higher than before."""

LATER = (1.5, 2, 4, 8, 16)
"""Times the training at which a schedule whose warmup it did not finish is at its peak, or past it, at the latest."""


class WarmupNeverEnds(Check):
    """The training is over before the warmup is: the learning rate never gets to the value that was set.

    ## Why is this a bug?
    The learning rate that was chosen is the peak of the schedule. If the warmup is longer than the training, the rate
    rises from 0 to only a part of it and the decay never comes. Two arguments in the wrong order are enough:
    `get_linear_schedule_with_warmup(optimizer, total, warmup)`.

    ## What to do
    Give the warmup in steps, as a small part of all updates.

    ## When it is right
    A run of a few steps, cyclic schedules, and a run that resumes or is interrupted are not reported. Neither is a rate
    that rises without a peak, or before another optimizer takes over, as in a learning rate range test.
    """

    id = "schedule::warmup-never-ends"
    needs = "schedule that can be computed ahead"
    formerly = ("schedule::warmup-ends",)
    explains = (
        "schedule::lr-zero",
        "schedule::decays-too-fast",
        "schedule::stepped-in-wrong-unit",
        "schedule::wrong-length",
        "schedule::may-be-too-long",
    )

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
        for seen, rises in self.schedulers.where_observed(self._observed):
            observed, where, hint = f"{seen.name}: {rises}", seen.made, None
            if self.asked is not None:
                asked = f"{self.asked[0]}={self.asked[1]}"
                observed = f"{asked} in {seen.planned_steps} updates; {rises}"
                where = self.monitor.locator.argument(self.asked[0]) or where
                hint = f"Make {asked} a small part of the {seen.planned_steps} updates."
            self.found(
                expected="a warmup that is over before the training is",
                observed=observed,
                where=where,
                update=self.monitor.updates_made,
                hint=hint,
            )

    def _observed(self, seen: SchedulerSeen) -> str | None:
        """How far a learning rate gets that only rises, and has a peak that it does not come to."""
        if seen.rate is None or seen.name == "CyclicLR" or seen.planned < FEWEST_STEPS:
            return None
        if not self.schedulers.known or self.schedulers.restored:
            return None
        planned = round(seen.planned)
        marks = [seen.rate(round((planned - 1) * part / (MOMENTS - 1))) for part in range(MOMENTS)]
        if not all(one < other for one, other in itertools.pairwise(marks)):
            return None
        later = [seen.rate(round(planned * times)) for times in LATER]
        has_peak = math.isfinite(later[-1]) and later[-1] <= max(later[:-1])
        if not has_peak or self.monitor.updates_made > seen.latest + FEWEST_STEPS:
            return None  # as in a test of rates, or in a stage before the training
        gets_to = f"; it gets to {marks[-1] / max(later):.0%} of its peak" if max(later) > marks[-1] else ""
        return f"after all {seen.planned_steps} steps the learning rate still rises{gets_to}"
