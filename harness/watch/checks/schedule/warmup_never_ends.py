from __future__ import annotations

import itertools
import math
from collections.abc import Callable

from harness.watch.check import Check
from harness.watch.events import End, TrainerMade
from harness.watch.facts.scheduler_ledger import FEWEST_STEPS, NO_SCHEDULER, SchedulerLedger, SchedulerSeen
from harness.watch.facts.schedules import NotComputable
from harness.watch.monitor import Monitor

MOMENTS = 11
"""Moments of the training, evenly over it, at each of which the learning rate must be higher than before."""

LATER = (1.5, 2, 4, 8, 16, 64, 256, 1024)
"""Times the training at which a schedule whose warmup it did not finish is at its peak, or past it, at the latest."""

FAR = 40_000
"""Steps after which a warmup is over at the latest, or after 16 times the training. By reasoning: none takes more."""


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

    needs = "schedule of eight steps or more that can be computed ahead"
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
            self.looked |= seen.steps > 0
            return None
        peak = _peak(seen.rate, planned)
        if peak is None:
            return None  # as in a test of rates
        self.looked = True
        if self.monitor.updates_made > seen.latest + FEWEST_STEPS:
            return None  # as in a stage before the training
        gets_to = f"; it gets to {marks[-1] / peak:.0%} of its peak" if peak > marks[-1] else ""
        return f"after all {seen.planned_steps} steps the learning rate still rises{gets_to}"


def _peak(rate: Callable[[int], float], planned: int) -> float | None:
    """The highest rate of a schedule that rises up to the planned step; None where it never stops."""
    before = planned
    for step in (round(planned * times) for times in LATER):
        if step > max(FAR, 16 * planned):
            break
        try:
            now = rate(step)
        except NotComputable:  # a rate that grows without end is too large at some step
            break
        if not math.isfinite(now):
            break
        if now <= rate(before):
            return rate(_last_rise(rate, before, step))
        before = step
    return None


def _last_rise(rate: Callable[[int], float], low: int, high: int) -> int:
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if rate(middle) > rate(middle - 1) else (low, middle)
    return low
