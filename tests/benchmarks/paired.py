"""How fast one way is beside another, timed in blocks of four rounds: how sure that is, and when it is enough.

The order of a block is reference, ours, ours, reference. What changes in proportion to time (a CPU that gets warm, a
load that comes) takes as much from one side as from the other, and each side comes once after itself and once after the
other one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from harness.documented_run.baseline.files import Finite
from harness.documented_run.baseline.statistics import ALPHA
from harness.files import StrictModel

LOOKS = (12, 24, 48, 96)
"""After how many blocks it is looked at whether the verdict is clear; the last look is the end. Each has twice the
blocks of the one before: an interval gets narrower by their root, so that looks between would seldom end it earlier."""

RESAMPLES = 9999
SEED = 0

NARROW = 0.005
"""Half an interval, relatively, that is narrow enough where there is no limit: recorded ratios are taken to differ by
as much at least (throughput.ROUNDING)."""

Told = Literal["faster or equal", "slower", "cannot tell"]


class Interval(StrictModel):
    """Where the median ratio of ever more blocks lies, by those that were timed.

    It is wide enough for several looks: at all of them together it is too high in 1 % of the measurements at most, and
    too low in 1 %.
    """

    low: Finite
    high: Finite
    blocks: int = Field(ge=1)

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.low > self.high:
            raise ValueError(f"low {self.low} is above high {self.high}")
        return self

    def told(self, limit: float) -> Told:
        """Slower only where the whole interval is below the limit, faster or equal only where none of it is."""
        if self.high < limit:
            return "slower"
        return "faster or equal" if self.low >= limit else "cannot tell"

    def blocks_that_tell(self, ratio: float, limit: float) -> float:
        """About how many blocks would leave the limit outside, if the ratio stayed: the width falls as their root."""
        distance = abs(ratio - limit)
        half = self.high - ratio if ratio < limit else ratio - self.low
        return self.blocks * (half / distance) ** 2 if distance else math.inf


def ratio_of(block: Sequence[float]) -> float:
    """The speed of ours beside the reference's in a block, from the seconds of its four rounds."""
    first, ours, ours_again, last = block
    return (first + last) / (ours + ours_again)


def bounds(ratios: Any, looks: int = len(LOOKS)) -> tuple[Any, Any]:
    """The ends of the interval of the median over the last axis of an array of ratios, at one of several looks.

    Percentiles of the bootstrap's medians: BCa corrects them by a jackknife, which fails for a median (Efron 1979), as
    leaving out one block gives two values only. Percentiles are too narrow where there are few blocks: they are taken
    further out, by what a t quantile is beyond a normal one and by the root of n / (n - 1) (the expanded percentile
    interval, Hesterberg 2015). The looks share the rate of errors equally (Bonferroni), which holds however they depend
    on each other; the narrowest common bound for these four looks, as Pocock's, would be 2 % narrower.
    """
    from scipy import stats  # a second, which only who times has to wait

    ratios = np.asarray(ratios, float)
    blocks = ratios.shape[-1]
    tail = stats.norm.cdf(math.sqrt(blocks / (blocks - 1)) * stats.t.ppf(ALPHA / looks, blocks - 1))
    found = stats.bootstrap(
        (ratios,),
        np.median,
        axis=-1,
        confidence_level=1 - 2 * tail,
        n_resamples=RESAMPLES,
        batch=max(1, 10_000_000 // ratios.size),
        method="percentile",
        random_state=np.random.default_rng(SEED),
    ).confidence_interval
    return found.low, found.high


def measured(ratios: Sequence[float], looks: int = len(LOOKS)) -> tuple[float, Interval]:
    """The median over blocks, and its interval; the same ratios give the same one."""
    low, high = bounds(ratios, looks)
    return float(np.median(ratios)), Interval(low=float(low), high=float(high), blocks=len(ratios))


def measure(
    block: Callable[[], Sequence[float]], limit: float | None = None, looks: Sequence[int] = LOOKS
) -> tuple[float, Interval]:
    """Time blocks until a look is clear: on which side of the limit the ratio is, or without one what it is.

    Args:
        block: times the four rounds of one block, in seconds.
    """
    ratios: list[float] = []
    for blocks in looks:
        ratios += [ratio_of(block()) for _ in range(blocks - len(ratios))]
        ratio, interval = measured(ratios, len(looks))
        narrow = interval.high - interval.low <= 2 * NARROW * ratio
        if narrow if limit is None else interval.told(limit) != "cannot tell":
            break
    return ratio, interval


def judged(ratio: float, interval: Interval, limit: float, busy: str | None = None) -> tuple[Told, str]:
    """The verdict against a limit, and what is said of it.

    ``busy``: that the machine was, in words; then "slower" cannot be told. The other way round it can: what others take
    makes an interval wider, and it is above the limit all the same.
    """
    told, why = interval.told(limit), ""
    if busy and told == "slower":
        told = "cannot tell"
    elif told == "cannot tell":
        blocks = interval.blocks_that_tell(ratio, limit)
        why = f", about {_rounded_up(blocks)} blocks would" if math.isfinite(blocks) else ", it is the limit itself"
    of = f"{ratio:.4g} ({interval.low:.4g} to {interval.high:.4g} in {interval.blocks} blocks)"
    return told, f"{of}, limit {limit:.4g}: {told}{why}" + (f", {busy}" if busy else "")


def _rounded_up(blocks: float) -> int:
    """To two digits: it is an estimate."""
    step: int = 10 ** max(0, math.floor(math.log10(blocks)) - 1)
    return math.ceil(blocks / step) * step
