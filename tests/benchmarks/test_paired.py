"""Blocks of rounds: the interval errs as rarely as promised, a clear case ends early, and what is not clear is said."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError
from scipy import stats

from harness.documented_run.baseline.statistics import ALPHA
from tests.benchmarks import paired
from tests.benchmarks.paired import LOOKS, Interval, bounds, judged, measure, measured
from tests.benchmarks.weather import rounds

EVEN = Interval(low=0.98, high=1.02, blocks=24)


def blocks(seed: int, *, ratio: float = 1.0, cv: float = 0.027) -> Callable[[], Any]:
    """What times one block after the other on a noisy machine."""
    each: Iterator[Any] = iter(rounds(np.random.default_rng(seed), 1, LOOKS[-1], ratio=ratio, cv=cv)[0])
    return lambda: next(each)


def test_a_block_is_the_references_time_over_ours() -> None:
    assert paired.ratio_of([1.0, 2.0, 3.0, 9.0]) == 2.0


def test_the_same_blocks_give_the_same_interval() -> None:
    ratios = np.random.default_rng(0).normal(1, 0.02, 24)
    ratio, interval = measured(list(ratios))
    assert measured(list(ratios)) == (ratio, interval)
    assert interval.low < ratio == np.median(ratios) < interval.high
    assert interval.blocks == 24


def test_blocks_that_agree_have_an_interval_without_width() -> None:
    assert measured([0.5] * 12) == (0.5, Interval(low=0.5, high=0.5, blocks=12))


def test_the_interval_is_about_that_of_the_order_statistics() -> None:
    """An exact interval of the median has two of the sorted values as its ends, by the binomial distribution."""
    ratios = np.sort(np.random.default_rng(0).normal(1, 0.02, 96))
    rank = int(stats.binom.ppf(ALPHA / len(LOOKS), 96, 0.5))
    low, high = bounds(ratios)
    assert ratios[rank - 3] < low < ratios[rank + 2]
    assert ratios[-rank - 3] < high < ratios[-rank + 2]


@pytest.mark.parametrize(
    ("limit", "told"),
    [
        (1.03, "slower"),
        (1.02, "cannot tell"),
        (1.0, "cannot tell"),
        (0.98, "faster or equal"),
        (0.9, "faster or equal"),
    ],
)
def test_three_verdicts(limit: float, told: str) -> None:
    assert EVEN.told(limit) == told
    assert f": {told}" in judged(1.0, EVEN, limit)[1]


@pytest.mark.parametrize("limit", [0.995, 1.004])
def test_how_many_blocks_would_tell(limit: float) -> None:
    """With half of them it still cannot be told, with half as many again it can."""

    def told(number: int) -> tuple[float, Interval]:
        ideal = 1 + 0.02 * stats.norm.ppf((np.arange(number) + 0.5) / number)
        return measured(list(ideal))

    ratio, interval = told(24)
    assert interval.told(limit) == "cannot tell"
    needed = interval.blocks_that_tell(ratio, limit)
    assert told(int(0.5 * needed))[1].told(limit) == "cannot tell"
    assert told(int(1.5 * needed))[1].told(limit) != "cannot tell"
    assert f"cannot tell, about {paired._rounded_up(needed)} blocks would" in judged(ratio, interval, limit)[1]


def test_what_no_number_of_blocks_would_tell() -> None:
    assert EVEN.blocks_that_tell(1.0, 1.0) == math.inf
    assert "it is the limit itself" in judged(1.0, EVEN, 1.0)[1]


@pytest.mark.parametrize(("blocks", "said"), [(7.2, 8), (99.5, 100), (331.0, 340), (12345.0, 13000)])
def test_an_estimate_has_two_digits(blocks: float, said: int) -> None:
    assert paired._rounded_up(blocks) == said


def test_slower_on_a_busy_machine_cannot_be_told() -> None:
    told, says = judged(0.9, Interval(low=0.89, high=0.91, blocks=24), 1.0, "the machine was busy")
    assert told == "cannot tell"
    assert says.endswith("limit 1: cannot tell, the machine was busy")
    told, says = judged(1.0, EVEN, 0.9, "the machine was busy")
    assert told == "faster or equal"
    assert says.endswith("limit 0.9: faster or equal, the machine was busy")


@pytest.mark.parametrize("values", [{"low": 1.1}, {"low": math.nan}, {"blocks": 0}])
def test_what_is_no_interval(values: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Interval(**{"low": 0.9, "high": 1.0, "blocks": 12, **values})


@pytest.mark.parametrize("ratio", [0.85, 1.15])
def test_a_clear_case_ends_at_the_first_look(ratio: float) -> None:
    found, interval = measure(blocks(0, ratio=ratio), limit=1.0)
    assert interval.blocks == LOOKS[0]
    assert found == pytest.approx(ratio, abs=0.03)


def test_what_is_not_clear_goes_on_to_the_last_look() -> None:
    ratio, interval = measure(blocks(0), limit=1.0)
    assert interval.blocks == LOOKS[-1]
    assert judged(ratio, interval, 1.0)[0] == "cannot tell"


def test_without_a_limit_it_ends_when_the_interval_is_narrow() -> None:
    assert measure(blocks(0, cv=0.003))[1].blocks == LOOKS[0]
    assert measure(blocks(0, cv=0.1))[1].blocks == LOOKS[-1]


def alarms(runs: int, *, looks: int) -> float:
    """How often a ratio that is the limit itself is called one side of it, at one of the looks that are taken."""
    blocks_of_runs: Any = np.moveaxis(rounds(np.random.default_rng(1), runs, LOOKS[-1]), -1, 0)
    ratios: Any = paired.ratio_of(blocks_of_runs)
    told = np.zeros(runs, bool)
    for number in LOOKS:
        low, high = bounds(ratios[:, :number], looks)
        told |= (low > 1) | (high < 1)
    return told.mean() / 2


@pytest.mark.nightly
def test_false_alarms_at_all_looks_together_are_as_rare_as_promised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paired, "RESAMPLES", 1999)
    runs = 300
    assert alarms(runs, looks=len(LOOKS)) <= ALPHA + 3 * math.sqrt(ALPHA / runs)


@pytest.mark.nightly
def test_without_the_correction_there_would_be_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three times as many, where each look is taken for the only one."""
    monkeypatch.setattr(paired, "RESAMPLES", 1999)
    runs = 500
    assert ALPHA / 4 < alarms(runs, looks=len(LOOKS)) <= ALPHA + 2 * math.sqrt(ALPHA / runs)
    assert alarms(runs, looks=1) > 2 * ALPHA
