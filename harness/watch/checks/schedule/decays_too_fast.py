from __future__ import annotations

from harness.watch.check import Check
from harness.watch.events import End
from harness.watch.facts.scheduler_ledger import NEGLIGIBLE, SchedulerLedger, SchedulerSeen
from harness.watch.facts.schedules import MOST_STEPS
from harness.watch.monitor import Monitor

MOMENTS = 21
"""Moments of the training, evenly over it, at which the learning rate is looked at."""

IDLE = 6
"""Largest number of them at which it may be negligible: more than a quarter of the training."""


class DecaysTooFast(Check):
    """The learning rate becomes so small that it changes nothing while most of the training is still to come.

    ## Why is this a bug?
    A factor that was meant for each epoch is applied at each step: 0.9 becomes 0.00003 within a hundred updates. The
    loss stands still, as if the model could learn no more.

    ## What to do
    Step the scheduler once an epoch, or choose a slower decay.

    ## When it is right
    A decay that ends with the training is not reported, nor are warm restarts.
    """

    needs = "learning rate scheduler"
    formerly = ("schedule::lr-zero", "schedule::lr-above-zero")

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.schedulers = monitor.fact(SchedulerLedger)

    def on_end(self, event: End) -> None:
        self.looked = self.schedulers.any_with_rates
        for seen, observed in self.schedulers.where_observed(self._observed):
            self.found(
                expected="a learning rate that lasts for the training",
                observed=observed,
                where=seen.where,
                update=self.monitor.updates_made,
            )

    def _observed(self, seen: SchedulerSeen) -> str | None:
        """How long a schedule without an end has come to nothing, where that is too long."""
        if seen.rate is None or seen.end is not None or seen.planned < 3:
            return None
        if not self.schedulers.known or self.schedulers.may_be_left:
            return None
        planned = min(round(seen.planned), MOST_STEPS)
        marks = [seen.rate(round(planned * part / (MOMENTS - 1))) for part in range(MOMENTS)]
        peak = max([*marks, seen.rate(0)])
        idle = sum(rate <= NEGLIGIBLE * peak for rate in marks)
        if peak <= 0 or idle <= IDLE:
            return None
        return f"{seen.name}: for {idle / MOMENTS:.0%} of the updates it is below {NEGLIGIBLE:.0e} of its peak"
