"""Curves as SVG: what the template draws, in numbers and strings.

A plot is 1000 wide and 200 high and is stretched to the width that there is, so that its text keeps its size.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

WIDTH, HEIGHT = 1000, 200
COLUMNS = 1500
"""Points of a line; of more updates each column keeps its least and its greatest value."""

TICKS = 4

Values = Sequence[float]


@dataclass(frozen=True)
class Series:
    """One line. ``style`` is its class on the page."""

    label: str
    values: Values
    style: str


@dataclass(frozen=True)
class CurveBand:
    """An area between two lines."""

    label: str
    least: Values
    greatest: Values


@dataclass(frozen=True)
class Mark:
    """An update that is marked."""

    update: int
    label: str
    fails: bool = True
    """Whether something does not hold there."""


@dataclass(frozen=True)
class Tick:
    """A place on an axis, in percent of its length, and what it says."""

    at: float
    label: str


@dataclass(frozen=True)
class CurveLine:
    """A series as it is drawn: the points of each piece, for what is not finite leaves a gap."""

    label: str
    style: str
    pieces: tuple[str, ...]


@dataclass(frozen=True)
class Chart:
    """A plot with its axes."""

    title: str
    unit: str
    lines: tuple[CurveLine, ...]
    band: CurveLine | None
    x: tuple[Tick, ...]
    y: tuple[Tick, ...]
    updates: int
    low: float
    high: float
    marks: tuple[tuple[float, Mark], ...]
    notes: tuple[str, ...]


def chart(
    title: str,
    unit: str,
    series: Sequence[Series],
    *,
    band: CurveBand | None = None,
    marks: Sequence[Mark] = (),
    notes: Sequence[str] = (),
) -> Chart | None:
    """The curves over the updates, counted from 1; None where there is no finite value."""
    updates = max((len(each.values) for each in series), default=0)
    drawn = [each.values for each in series] + ([band.least, band.greatest] if band else [])
    finite = [value for values in drawn for value in values[:updates] if math.isfinite(value)]
    if not finite:
        return None
    steps = nice_steps(min(finite), max(finite))
    low, high = steps[0], steps[-1]
    # As many digits as make each label another.
    digits = max(4, 2 + math.ceil(math.log10(max(abs(low), abs(high)) / (steps[1] - steps[0]))))

    def line(each: Series) -> CurveLine:
        return CurveLine(each.label, each.style, tuple(_pieces(each.values, updates, low, high)))

    return Chart(
        title,
        unit,
        tuple(map(line, series)),
        _area(band, updates, low, high) if band else None,
        tuple(Tick(100 * _across(update, updates), f"{update}") for update in _shown_updates(updates)),
        tuple(Tick(100 - 100 * (step - low) / (high - low), short(step, digits)) for step in steps),
        updates,
        low,
        high,
        tuple((100 * _across(mark.update, updates), mark) for mark in marks if mark.update <= updates),
        (*notes, *_not_finite(series)),
    )


def running_means(values: Values, window: int) -> list[float]:
    """The mean of each value and those before it, ``window`` in all; of fewer at the beginning.

    >>> running_means([1.0, 2.0, 6.0], 2)
    [1.0, 1.5, 4.0]
    """
    sums = np.convolve(values, np.ones(window))[: len(values)] if len(values) else np.empty(0)
    means: list[float] = (sums / np.minimum(np.arange(1, len(values) + 1), window)).tolist()
    return means


def window_of(updates: int) -> int:
    """Over how many updates a noisy curve is averaged: a fiftieth of them.

    >>> window_of(1377), window_of(30)
    (27, 1)
    """
    return max(1, updates // 50)


def nice_steps(low: float, high: float) -> list[float]:
    """Round numbers around both ends; from 0 on where that is not far.

    >>> nice_steps(0.02, 0.71)
    [0.0, 0.2, 0.4, 0.6, 0.8]
    >>> nice_steps(3.0, 3.0)
    [2.0, 2.5, 3.0, 3.5, 4.0]
    """
    if 0 < low < high / 2:
        low = 0.0
    if low == high:
        low, high = low - (abs(low) / 3 or 1), high + (abs(high) / 3 or 1)
    rough = (high - low) / TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= rough * (1 - 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    digits = max(0, 2 - math.floor(math.log10(step)))
    return [round(number * step, digits) for number in range(first, last + 1)]


def short(value: float, digits: int = 4) -> str:
    """A number in few characters.

    >>> short(5e-05), short(0.25), short(1377.0), short(2.5e-06)
    ('5e-5', '0.25', '1377', '2.5e-6')
    """
    mantissa, exponent, power = f"{value:.{digits}g}".partition("e")
    return f"{mantissa}e{int(power)}" if exponent else mantissa


def _shown_updates(updates: int) -> list[int]:
    if updates == 1:
        return [1]
    steps = [round(step) for step in nice_steps(0, updates)]
    inner = [step for step in steps if 1 < step < updates - 0.12 * updates]
    return [1, *inner, updates]


def _across(update: float, updates: int) -> float:
    """From 0 at the first update to 1 at the last."""
    return (update - 1) / max(1, updates - 1)


def _point(update: float, value: float, updates: int, low: float, high: float) -> str:
    x, y = WIDTH * _across(update, updates), HEIGHT * (1 - (value - low) / (high - low))
    return f"{round(x, 1):g},{round(y, 1):g}"


def _pieces(values: Values, updates: int, low: float, high: float) -> Iterator[str]:
    piece: list[str] = []
    for update, value in thinned(values):
        if math.isfinite(value):
            piece.append(_point(update, value, updates, low, high))
        elif piece:
            yield " ".join(piece)
            piece = []
    if piece:
        yield " ".join(piece if len(piece) > 1 else piece * 2)


def thinned(values: Values) -> list[tuple[int, float]]:
    """Each value with its update; of many the least and the greatest of each column, and what is not finite."""
    numbered = list(enumerate(values, start=1))
    if len(numbered) <= COLUMNS:
        return numbered
    width = math.ceil(2 * len(numbered) / COLUMNS)
    kept: set[int] = {1, len(numbered)}
    for start in range(0, len(numbered), width):
        part = numbered[start : start + width]
        kept |= {update for update, value in part if not math.isfinite(value)}
        if finite := [each for each in part if math.isfinite(each[1])]:
            kept |= {min(finite, key=lambda each: each[1])[0], max(finite, key=lambda each: each[1])[0]}
    return [numbered[update - 1] for update in sorted(kept)]


def _area(band: CurveBand, updates: int, low: float, high: float) -> CurveLine:
    def points(values: Values) -> list[str]:
        return [_point(update, value, updates, low, high) for update, value in thinned(values[:updates])]

    return CurveLine(band.label, "band", (" ".join([*points(band.greatest), *reversed(points(band.least))]),))


def _not_finite(series: Sequence[Series]) -> Iterator[str]:
    for curve in series:
        broken = [update for update, value in enumerate(curve.values, start=1) if not math.isfinite(value)]
        if broken:
            yield f"{curve.label}: not a finite number at {len(broken)} updates, first at update {broken[0]}"
