"""How far a new run's metric may be from the recorded ones before it is more than chance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

ALPHA = 0.01
"""How often a comparison may flag runs of the same quality. It is shared by the metrics that are compared."""

POWER = 0.8
"""How often a drop must be flagged to be called one that the comparison can see."""


@dataclass(frozen=True)
class Spread:
    """A metric over the recorded seeds.

    Args:
        values: one for each seed, at least two.
        step: the smallest amount by which the metric can change, such as one row's share of the accuracy. Seeds that
            agree by chance would otherwise have no spread at all.
    """

    values: tuple[float, ...]
    step: float = 0.0

    def __post_init__(self) -> None:
        if len(self.values) < 2:
            raise ValueError(f"a spread needs two or more seeds, found {len(self.values)}")

    @property
    def mean(self) -> float:
        return fmean(self.values)

    @property
    def deviation(self) -> float:
        """The standard deviation over the seeds; at least that of rounding to steps, a step over the root of 12."""
        return max(stdev(self.values), self.step / math.sqrt(12))

    def error(self, runs: int) -> float:
        """The standard error of the difference between the mean of ``runs`` new runs and the recorded mean."""
        return self.deviation * math.sqrt(1 / len(self.values) + 1 / runs)

    def interval(self, runs: int, alpha: float) -> tuple[float, float]:
        """Where the mean of ``runs`` new runs of the same quality lies, with probability 1 - alpha (Student's t)."""
        half = self._quantile(alpha) * self.error(runs)
        return self.mean - half, self.mean + half

    def effect(self, new: Sequence[float]) -> float:
        """How many standard deviations of one run the new mean is above the recorded one."""
        return (fmean(new) - self.mean) / (self.deviation or math.inf)

    def power(self, drop: float, runs: int, alpha: float) -> float:
        """How often ``runs`` runs that are really worse by ``drop`` fall below the interval (noncentral t)."""
        from scipy import stats  # a second, which only who compares metrics has to wait

        below: float = stats.nct.cdf(-self._quantile(alpha), len(self.values) - 1, -drop / self.error(runs))
        return below

    def smallest_drop(self, runs: int, alpha: float, power: float = POWER) -> float:
        """The smallest drop that ``runs`` runs show with this power; 0 where the seeds do not differ at all."""
        error = self.error(runs)
        if error == 0:
            return 0.0
        from scipy import optimize

        drop: float = optimize.brentq(
            lambda errors: self.power(errors * error, runs, alpha) - power, 0, 100 * self._quantile(alpha)
        )
        return drop * error

    def _quantile(self, alpha: float) -> float:
        from scipy import stats

        quantile: float = stats.t.ppf(1 - alpha / 2, len(self.values) - 1)
        return quantile
