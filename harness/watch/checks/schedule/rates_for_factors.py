from __future__ import annotations

import math

from harness.watch.check import Check
from harness.watch.events import End
from harness.watch.facts.scheduler_ledger import SchedulerLedger, SchedulerSeen
from harness.watch.facts.schedules import MOST_STEPS
from harness.watch.monitor import Monitor

RATE = 0.1
"""Learning rates below which no factor is chosen by chance that is the same. A factor of 0.1 is one. Neither half nor
double of it changes a verdict of the corpus."""

AS_GIVEN = 1e-3
"""Largest difference between such a factor and the rate, as a share: a warmup may end between two steps."""


class RatesForFactors(Check):
    """The function of a `LambdaLR` returns learning rates where factors are meant.

    ## Why is this a bug?
    What it returns is multiplied by the optimizer's learning rate: 0.001 becomes 0.000001, and the model hardly moves.

    ## What to do
    Return factors of the optimizer's learning rate, up to 1, or make the optimizer with lr=1.0.

    ## When it is right
    Functions that return rates are right with an optimizer whose learning rate is 1, and are not reported.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.optim.lr_scheduler.LambdaLR.html
    """

    needs = "learning rate scheduler"
    formerly = ("schedule::lr-zero", "schedule::lr-above-zero")
    explains = (
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
        self.looked = self.schedulers.any_with_rates
        for seen, observed in self.schedulers.where_observed(self._observed):
            self.found(
                expected=f"factors that {seen.name} multiplies the learning rate {seen.base:.3g} with",
                observed=observed,
                where=seen.made,
                update=1,
            )

    def _observed(self, seen: SchedulerSeen) -> str | None:
        """The greatest factor of a function, where it is the very rate that it is multiplied with."""
        if seen.rate is None or seen.base is None or not 0 < seen.base < RATE or not seen.steps:
            return None
        steps = range(min(max(seen.steps, round(seen.planned)), MOST_STEPS) + 1)
        rates = [seen.rate(step) for step in steps]
        factor = max(rates) / seen.base
        still_rises = rates[0] < rates[-1] == max(rates)  # a trial within a warmup, whose peak is not known
        if still_rises or not math.isclose(factor, seen.base, rel_tol=AS_GIVEN):
            return None
        return f"{seen.name} multiplies it with up to {factor:.3g}: it is at most {factor * seen.base:.3g}"
