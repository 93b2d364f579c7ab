"""The statistics do what they say: checked by simulation, against scipy's own test, and against published figures."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from harness.documented_run.baseline.statistics import Spread
from scripts.same_results import Equivalence

ROUNDS = 5_000
PAIRS = 1_000


def simulated(drop: float, *, seeds: int, runs: int, alpha: float) -> float:
    """How often runs that are worse by ``drop`` standard deviations fall outside, on either side."""
    random = np.random.default_rng(0)
    flagged = 0
    for _ in range(ROUNDS):
        spread = Spread(tuple(random.normal(size=seeds)))
        low, high = spread.interval(runs, alpha)
        flagged += not low <= random.normal(-drop, size=runs).mean() <= high
    return flagged / ROUNDS


@pytest.mark.nightly
@pytest.mark.parametrize(("seeds", "runs", "alpha"), [(5, 1, 0.05), (20, 1, 0.01), (20, 3, 0.05)])
def test_false_alarms_at_the_nominal_rate(seeds: int, runs: int, alpha: float) -> None:
    error = math.sqrt(alpha * (1 - alpha) / ROUNDS)
    assert simulated(0.0, seeds=seeds, runs=runs, alpha=alpha) == pytest.approx(alpha, abs=4 * error)


@pytest.mark.nightly
@pytest.mark.parametrize(("seeds", "runs"), [(20, 1), (20, 5)])
def test_power_as_stated(seeds: int, runs: int) -> None:
    """The stated power is that of a spread that was measured exactly; a simulated one varies around it."""
    exact = Spread(tuple(stats.norm.ppf((np.arange(seeds) + 0.5) / seeds)))
    known = Spread(tuple(np.asarray(exact.values) / exact.deviation))
    drop = known.smallest_drop(runs, 0.05)
    assert known.power(drop, runs, 0.05) == pytest.approx(0.8)
    assert simulated(drop, seeds=seeds, runs=runs, alpha=0.05) == pytest.approx(0.8, abs=0.02)


def test_published_sensitivity() -> None:
    """10 seeds of standard deviation 2 points see a drop of 5.7 points in one run, 2.9 in five (one-sided .05)."""
    spread = Spread(tuple(0.02 * value for value in (-1, 1) * 5))
    scale = 0.02 / spread.deviation
    assert scale * spread.smallest_drop(1, 0.10) == pytest.approx(0.057, abs=0.001)
    assert scale * spread.smallest_drop(5, 0.10) == pytest.approx(0.029, abs=0.001)


@given(st.lists(st.floats(0, 1), min_size=2, max_size=10), st.floats(0, 1))
def test_one_run_is_students_t_test(values: list[float], new: float) -> None:
    """For one new run the interval is the two-sample t-test with the recorded seeds' variance."""
    spread = Spread(tuple(values))
    if spread.deviation < 1e-6:
        return
    low, high = spread.interval(1, 0.05)
    statistic = (new - spread.mean) / (np.std(values, ddof=1) * math.sqrt(1 + 1 / len(values)))
    p = 2 * stats.t.sf(abs(statistic), len(values) - 1)
    if not math.isclose(p, 0.05, rel_tol=1e-6):
        assert (low <= new <= high) == (p > 0.05)


def test_seeds_that_agree_by_chance_have_a_steps_spread() -> None:
    same = Spread((0.84, 0.84, 0.84), step=1 / 408)
    assert same.deviation == pytest.approx(1 / 408 / math.sqrt(12))
    low, high = same.interval(1, 0.01)
    assert low < 0.84 < high


def test_effect_is_in_standard_deviations() -> None:
    spread = Spread((0.8, 0.9))
    assert spread.effect([0.85 - spread.deviation]) == pytest.approx(-1.0)


def test_one_seed_has_no_spread() -> None:
    with pytest.raises(ValueError, match="two or more seeds, found 1"):
        Spread((0.84,))


def samples(difference: float, sizes: tuple[int, int], ratio: float = 1.0) -> Iterator[Equivalence]:
    """Pairs of samples whose means are ``difference`` standard deviations apart; the other's is ``ratio`` of that."""
    random = np.random.default_rng(1)
    for _ in range(PAIRS):
        one, other = random.normal(difference, 1.0, sizes[0]), random.normal(0.0, ratio, sizes[1])
        yield Equivalence(Spread(tuple(one)), Spread(tuple(other)), margin=2.0)


@pytest.mark.nightly
@pytest.mark.parametrize("sizes", [(20, 5), (5, 5)], ids=str)
@pytest.mark.parametrize("ratio", [1.0, 0.5])
def test_means_a_margin_apart_are_called_equivalent_as_rarely_as_stated(sizes: tuple[int, int], ratio: float) -> None:
    wrong = sum(each.shown for each in samples(2.0, sizes, ratio)) / PAIRS
    assert wrong <= 0.05 + 4 * math.sqrt(0.05 * 0.95 / PAIRS)


def test_too_few_seeds_show_nothing() -> None:
    """Samples that do not differ at all are not equivalent by that."""
    loose = Equivalence(Spread((-1.0, 1.0)), Spread((-1.0, 1.0)), margin=2.0)
    assert loose.difference == 0
    assert not loose.shown


@pytest.mark.nightly
@pytest.mark.parametrize("sizes", [(20, 5), (20, 20), (5, 5)], ids=str)
def test_power_of_equivalence_as_stated(sizes: tuple[int, int]) -> None:
    """With the spreads known; the stated power is then how often equal means are shown."""
    one, other = (Spread(tuple(stats.norm.ppf((np.arange(size) + 0.5) / size))) for size in sizes)
    known = Equivalence(
        Spread(tuple(np.asarray(one.values) / one.deviation)),
        Spread(tuple(np.asarray(other.values) / other.deviation)),
        margin=2.0,
    )
    shown = sum(each.shown for each in samples(0.0, sizes)) / PAIRS
    assert known.power(2.0) == pytest.approx(shown, abs=0.05)
    assert known.power(known.smallest_margin()) == pytest.approx(0.8)


@settings(deadline=None)
@given(
    st.lists(st.floats(0, 1), min_size=2, max_size=10),
    st.lists(st.floats(0, 1), min_size=2, max_size=10),
    st.floats(0.01, 0.5),
)
def test_equivalence_is_two_of_scipys_tests(one: list[float], other: list[float], margin: float) -> None:
    equivalence = Equivalence(Spread(tuple(one)), Spread(tuple(other)), margin)
    if min(equivalence.one.deviation, equivalence.other.deviation) < 1e-6:
        return
    above = stats.ttest_ind(np.add(one, margin), other, equal_var=False, alternative="greater").pvalue
    below = stats.ttest_ind(np.subtract(one, margin), other, equal_var=False, alternative="less").pvalue
    assert equivalence.p == pytest.approx(max(above, below), abs=1e-9)
    low, high = equivalence.interval
    if not math.isclose(equivalence.p, 0.05, rel_tol=1e-6):
        assert equivalence.shown == (-margin < low and high < margin)


def test_constants_are_equivalent_if_they_are_near() -> None:
    near, far = (Equivalence(Spread((0.5, 0.5)), Spread((value, value)), margin=0.1) for value in (0.55, 0.7))
    assert (near.shown, near.power(0.1), near.smallest_margin()) == (True, 1.0, 0.0)
    assert not far.shown
