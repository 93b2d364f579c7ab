"""What two starts of a script differ in: where their trainings part, and which of their numbers are others."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from harness.digests import differing
from harness.findings import few
from harness.starts.journal import Journal, Update, loss_in, losses_shown
from harness.vary.account import Account, ReportedNumber
from harness.watch.facts.formulas import RATES

NAMES_SHOWN = 3
"""Names that are said."""

MUCH = 0.5
"""Standard errors by which a number of an evaluation must be another, as for metrics::mean-of-batches: with less, the
choice of the rows changes it far more."""

SHARE_OF_NUMBER = 0.01
"""The standard error that a number is taken to have where its rows do not tell it."""

ROUNDING = 2e-5
"""Share by which a number may change because it was added up in a different order."""

ROUNDING_OF_LOSS = 1e-3
"""Share by which a loss of the same rows may change with another number of threads."""


@dataclass(frozen=True)
class Run:
    """One start of a script, and what came of it."""

    journal: Journal
    account: Account
    seconds: float
    crashed: str | None = None
    """The end of its traceback, or how it ended."""


Part = Literal["rows", "contents", "rates", "losses", "weights", "number of updates"]


@dataclass(frozen=True)
class Parting:
    """Where two trainings part."""

    part: Part
    """What is another there."""
    update: int
    what: str
    where: str | None = None
    at_the_end: bool = False
    """Whether all updates are the same, and what is left of them is not: another state was loaded."""


def parting(one: Run, other: Run, parts: Sequence[Part] = ()) -> Parting | None:
    """The first update in which two trainings are not the same, bit for bit; of ``parts`` alone, where some are
    named."""
    for first, second in zip(one.journal.updates, other.journal.updates, strict=False):
        for found in _partings(first, second):
            if not parts or found.part in parts:
                return found
    made = len(one.journal.updates), len(other.journal.updates)
    if made[0] != made[1] and (not parts or "number of updates" in parts):
        last = one.journal.updates[min(made) - 1].where if min(made) else None
        return Parting("number of updates", min(made) + 1, f"{made[0]} updates and {made[1]}", last)
    ends = one.journal.end, other.journal.end
    if ends[0] is None or ends[1] is None or (parts and "weights" not in parts):
        return None
    names = differing(ends[0].weights, ends[1].weights)
    return Parting("weights", max(made), f"at the end, {few(names, NAMES_SHOWN)}", None, True) if names else None


def first_loss(one: Run, other: Run) -> Parting | None:
    """Where a model is given all rows at once, which of them count shows in the first loss."""
    first, second = one.journal.updates[0], other.journal.updates[0]
    for mine, theirs in zip(map(loss_in, first.losses), map(loss_in, second.losses), strict=False):
        if mine is not None and theirs is not None and abs(mine - theirs) > ROUNDING_OF_LOSS * abs(mine):
            return Parting("losses", 1, f"a loss of {mine:.6g} and {theirs:.6g} of the same inputs", first.where)
    return None


def _partings(one: Update, other: Update) -> Iterator[Parting]:
    rows = [[row for batch in each.batches for row in batch.rows] for each in (one, other)]
    if rows[0] != rows[1]:
        few_rows = [", ".join(str(row)[:8] for row in each[:5]) for each in rows]
        yield Parting("rows", one.at, f"rows {few_rows[0]} … and {few_rows[1]} …", one.where)
    elif [each.content for each in one.batches] != [each.content for each in other.batches]:
        yield Parting("contents", one.at, "the values of the same rows", one.where)
    if (one.lr, one.options) != (other.lr, other.options):
        rates = [", ".join(f"{rate:.6g}" for rate in each.lr) for each in (one, other)]
        yield Parting("rates", one.at, f"a learning rate of {rates[0]} and {rates[1]}", one.where)
    if names := differing(one.weights, other.weights):
        yield Parting("weights", one.at, few(names, NAMES_SHOWN), one.where)
    if one.losses != other.losses:
        losses = [losses_shown(each.losses) for each in (one, other)]
        yield Parting("losses", one.at, f"a loss of {losses[0]} and {losses[1]}", one.where)


@dataclass(frozen=True)
class Series:
    """What one line reports again and again by one name."""

    name: str
    where: str | None
    reported: tuple[ReportedNumber, ...]


Numbers = dict[tuple[str, str | None], Series]


def series(run: Run) -> Numbers:
    """The numbers of a start, by name and line."""
    found: dict[tuple[str, str | None], list[ReportedNumber]] = {}
    for each in run.account.reported:
        found.setdefault((each.name, each.where), []).append(each)
    return {key: Series(*key, tuple(numbers)) for key, numbers in found.items()}


def steady(one: Run, again: Run) -> tuple[Numbers, Series | None]:
    """The numbers that are the same in two equal starts, and one that is not."""
    first, second = series(one), series(again)
    same = {
        key: each
        for key, each in first.items()
        if key in second and [s.value for s in each.reported] == [s.value for s in second[key].reported]
    }
    return same, next((each for key, each in first.items() if key not in same), None)


@dataclass(frozen=True)
class Another:
    """A number that is another in two starts."""

    name: str
    one: ReportedNumber
    other: ReportedNumber


def numbers_apart(numbers: Numbers, other: Run, rows: int) -> Another | None:
    """The first of these numbers that differs in another start by more than the choice of its rows makes of it.

    ``rows`` are those of the evaluation that they may be of.
    """
    theirs = series(other)
    for key, number in numbers.items():
        pairs = list(zip(number.reported, theirs[key].reported, strict=False)) if key in theirs else []
        apart = [(one, two) for one, two in pairs if abs(one.value - two.value) > _margin(one, rows)]
        if apart:
            return Another(number.name, *apart[0])
    return None


def _margin(number: ReportedNumber, rows: int) -> float:
    """Amount by which a number may change: a unit of its last digit, rounding, and what does not matter."""
    value = abs(number.value)
    whole = 100.0 if number.percent or value > 1 else 1.0
    share = value / whole
    if number.kind in RATES and share <= 1 and rows:
        error = whole * math.sqrt(share * (1 - share) / rows)
    else:
        error = SHARE_OF_NUMBER * value
    return max(2.0 * number.half * (1 + 1e-6), ROUNDING * value, MUCH * error)


def are_equal(numbers: Numbers, other: Run) -> bool:
    """Whether all of these numbers are the same in another start."""
    theirs = series(other)
    return all(
        key in theirs and [each.value for each in one.reported] == [each.value for each in theirs[key].reported]
        for key, one in numbers.items()
    )


def score(numbers: Iterable[Series]) -> ReportedNumber | None:
    """The latest accuracy that is none of the training's."""
    latest = [each.reported[-1] for each in numbers if "train" not in each.name]
    found = [each for each in latest if each.kind == "accuracy" and as_share(each) <= 1]
    return max(found, key=lambda each: each.at, default=None)


def as_share(number: ReportedNumber) -> float:
    return number.value / (100.0 if number.percent or number.value > 1 else 1.0)
