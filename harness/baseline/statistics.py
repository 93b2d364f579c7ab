"""How far a new run's metric may be from the recorded ones before it is more than chance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from scipy import optimize, stats

ALPHA = 0.01
"""How often a comparison may flag runs of the same quality. It is shared by the metrics that are compared."""

POWER = 0.8
"""How often a drop must be flagged to be called one that the comparison can see."""

EQUIVALENCE_ALPHA = 0.05
"""How often two means that are a margin apart may be called equivalent: the usual level of each one-sided test."""


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
        below: float = stats.nct.cdf(-self._quantile(alpha), len(self.values) - 1, -drop / self.error(runs))
        return below

    def smallest_drop(self, runs: int, alpha: float, power: float = POWER) -> float:
        """The smallest drop that ``runs`` runs show with this power; 0 where the seeds do not differ at all."""
        error = self.error(runs)
        if error == 0:
            return 0.0
        drop: float = optimize.brentq(
            lambda errors: self.power(errors * error, runs, alpha) - power, 0, 100 * self._quantile(alpha)
        )
        return drop * error

    def _quantile(self, alpha: float) -> float:
        quantile: float = stats.t.ppf(1 - alpha / 2, len(self.values) - 1)
        return quantile


@dataclass(frozen=True)
class Equivalence:
    """Whether the means behind two samples are less than a margin apart: two one-sided t tests.

    That two samples do not differ significantly shows nothing: too few seeds never do. Here it is the other way round:
    without evidence the means count as apart (Schuirmann 1987). The samples may have other variances (Welch 1947).

    Args:
        margin: the smallest difference that would matter, in the metric's unit; above 0.
    """

    one: Spread
    other: Spread
    margin: float
    alpha: float = EQUIVALENCE_ALPHA

    @property
    def difference(self) -> float:
        return self.one.mean - self.other.mean

    @property
    def error(self) -> float:
        """The standard error of the difference."""
        return math.sqrt(sum(self._variances))

    @property
    def freedom(self) -> float:
        """The degrees of freedom (Welch and Satterthwaite)."""
        sizes = (len(self.one.values), len(self.other.values))
        parts = sum(variance**2 / (size - 1) for variance, size in zip(self._variances, sizes, strict=True))
        return sum(self._variances) ** 2 / parts if parts else float(sum(sizes) - 2)

    @property
    def p(self) -> float:
        """The larger of the two one-sided p values: that the difference is not above -margin, or not below margin."""
        nearer = self.margin - abs(self.difference)
        if self.error == 0:
            return float(nearer <= 0)
        p: float = stats.t.sf(nearer / self.error, self.freedom)
        return p

    @property
    def shown(self) -> bool:
        return self.p < self.alpha

    @property
    def interval(self) -> tuple[float, float]:
        """Of the difference, with probability 1 - 2 alpha: equivalence is shown where it lies within the margin."""
        half = self._quantile * self.error
        return self.difference - half, self.difference + half

    def power(self, margin: float) -> float:
        """How often samples of these sizes and spreads show means within ``margin`` that are really equal."""
        if self.error == 0:
            return 1.0
        steps, quantile = margin / self.error, self._quantile
        # The estimated error is the true one times a chi variable over the root of its degrees of freedom.
        estimated = stats.chi(self.freedom, scale=1 / math.sqrt(self.freedom))
        power: float = estimated.expect(
            lambda ratio: 2 * stats.norm.cdf(steps - quantile * ratio) - 1, lb=0, ub=steps / quantile
        )
        return power

    def smallest_margin(self, power: float = POWER) -> float:
        """The smallest margin within which these samples show equal means with this power."""
        if self.error == 0:
            return 0.0
        steps: float = optimize.brentq(
            lambda steps: self.power(steps * self.error) - power, 0.1 * self._quantile, 10 * self._quantile
        )
        return steps * self.error

    @property
    def _variances(self) -> tuple[float, float]:
        """Of the two means."""
        one, other = (spread.deviation**2 / len(spread.values) for spread in (self.one, self.other))
        return one, other

    @property
    def _quantile(self) -> float:
        quantile: float = stats.t.ppf(1 - self.alpha, self.freedom)
        return quantile
