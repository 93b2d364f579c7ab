"""Curves as they are drawn."""

from __future__ import annotations

import doctest
import math

import pytest

from harness.report.html import curves
from harness.report.html.curves import CurveBand, Mark, Series, chart, nice_steps, thinned


def test_examples() -> None:
    assert doctest.testmod(curves).failed == 0


@pytest.mark.parametrize("low", [0.0, 1e-9, 0.3, -5.0, 1234.5])
@pytest.mark.parametrize("span", [1e-6, 0.02, 1.0, 37.0, 1e6])
def test_steps_cover_the_values_with_few_lines(low: float, span: float) -> None:
    steps = nice_steps(low, low + span)
    assert steps[0] <= low + 1e-9 * span
    assert steps[-1] >= low + span - 1e-6 * span
    assert 3 <= len(steps) <= 8
    drawn = chart("Loss", "", [Series("this", [low, low + span], "run-0")])
    assert drawn is not None
    assert len({tick.label for tick in drawn.y}) == len(drawn.y)


def test_a_spike_is_not_lost_among_many_updates() -> None:
    values = [0.1] * 25_257
    values[17_000], values[20_000], values[21_000] = 9.0, -3.0, math.nan
    kept = dict(thinned(values))
    assert len(kept) < 2 * curves.COLUMNS
    assert (kept[17_001], kept[20_001]) == (9.0, -3.0)
    assert math.isnan(kept[21_001])
    assert list(kept) == sorted(kept)


def test_a_band_goes_there_and_back() -> None:
    band = CurveBand("seeds", [0.0, 1.0], [2.0, 2.0])
    drawn = chart("Loss", "", [Series("this", [1.0, 1.5], "run-0")], band=band)
    assert drawn is not None
    assert drawn.band is not None
    assert drawn.band.pieces == ("0,0 1000,0 1000,100 0,200",)


def test_marks_beyond_the_updates_are_left_out() -> None:
    drawn = chart("Loss", "", [Series("this", [1.0, 1.5, 2.0], "run-0")], marks=[Mark(2, "here"), Mark(4, "there")])
    assert drawn is not None
    assert drawn.marks == ((50.0, Mark(2, "here")),)


@pytest.mark.parametrize("values", [[], [math.nan, math.inf]])
def test_nothing_to_draw(values: list[float]) -> None:
    assert chart("Loss", "", [Series("this", values, "run-0")]) is None


def test_one_update_is_a_point() -> None:
    drawn = chart("Loss", "", [Series("this", [0.5], "run-0")])
    assert drawn is not None
    assert len(drawn.lines[0].pieces[0].split()) == 2, "a line of one point shows nothing"
