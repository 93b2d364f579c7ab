"""What a start with a setting turned does otherwise: in its training, else in what it evaluates, prints or saves."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from harness.digests import differing
from harness.findings import few
from harness.starts.journal import End, Journal, Saved, Update, losses_shown

Part = Literal[
    "rows",
    "values of rows",
    "learning rate",
    "optimizer",
    "loss",
    "gradients",
    "weights",
    "number of updates",
    "evaluation",
    "printed",
    "saved",
]

NAMES_SHOWN = 3

NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")


@dataclass(frozen=True)
class Differs:
    """The first thing that is another."""

    part: Part
    update: int | None
    what: str
    where: str | None = None
    by_draws: bool = False
    """Whether the generators of random numbers are elsewhere, so that all of it may follow from what was drawn."""


def of_updates(one: Update, other: Update, noise: Mapping[str, Sequence[int]] = {}) -> Differs | None:
    """What an update has otherwise; ``noise`` has the updates of which a field is not the same in each start."""

    def same(field: str) -> bool:
        return one.at in noise.get(field, ()) or getattr(one, field) == getattr(other, field)

    drawn = bool(differing(one.random, other.random)) and one.at not in noise.get("random", ())
    found: tuple[Part, str] | None = None
    if not same("batches"):
        found = _of_batches(one, other)
    elif not same("lr"):
        found = "learning rate", f"{_rates(other)} for {_rates(one)}"
    elif not same("options"):
        found = "optimizer", _of_digests(one.options, other.options, values=True)
    elif not same("weights"):
        found = "weights", _of_digests(one.weights, other.weights)
    elif not (same("gradients") and same("scale") and same("trained") and same("modes")):
        if not same("losses"):
            found = "loss", f"{losses_shown(other.losses)} for {losses_shown(one.losses)}"
        else:
            found = "gradients", _of_digests(one.gradients, other.gradients)
    elif not (same("state") and same("skipped")):
        found = "weights", "the optimizer's state"
    if found is None:
        return None
    sizes = [sum(len(each.rows) for each in update.batches) for update in (one, other)]
    by_draws = drawn and found[0] not in ("learning rate", "optimizer") and sizes[0] == sizes[1]
    return Differs(found[0], other.at, found[1], other.where, by_draws)


def loss_alone(one: Update, other: Update, noise: Mapping[str, Sequence[int]]) -> Differs | None:
    """A loss that is another, of an update whose gradients are the same: it shows, and trains nothing."""
    if one.at in noise.get("losses", ()) or one.losses == other.losses:
        return None
    what = f"the number alone, and no gradient: {losses_shown(other.losses)} for {losses_shown(one.losses)}"
    return Differs("loss", other.at, what, other.where)


def _of_batches(one: Update, other: Update) -> tuple[Part, str]:
    rows = [[each.rows for each in update.batches] for update in (one, other)]
    if rows[0] != rows[1]:
        sizes = [sum(map(len, each)) for each in rows]
        what = "as many rows, others or in another order" if sizes[0] == sizes[1] else f"{sizes[1]} rows for {sizes[0]}"
        return "rows", what
    return "values of rows", "the same rows hold other numbers"


def _rates(update: Update) -> str:
    return few([f"{rate:.4g}" for rate in dict.fromkeys(update.lr)], NAMES_SHOWN)


def _of_digests(one: dict[str, str], other: dict[str, str], *, values: bool = False) -> str:
    names = differing(one, other)
    if values:
        return few([f"{name} {other.get(name)} for {one.get(name)}" for name in names], NAMES_SHOWN)
    return few(names, NAMES_SHOWN)


def noise_of(one: Journal, other: Journal) -> dict[str, list[int]]:
    """The updates of which a field is another in two unchanged starts."""
    found: dict[str, list[int]] = {}
    for first, again in zip(one.updates, other.updates, strict=False):
        for field in asdict(first):
            if getattr(first, field) != getattr(again, field):
                found.setdefault(field, []).append(first.at)
    return found


@dataclass(frozen=True)
class After:
    """What a start has done beside its updates."""

    evaluations: Any
    saved: dict[tuple[str, int], dict[str, str]]
    printed: list[str]
    """Lines, each with its numbers."""


def after(journal: Journal, printed: str) -> After:
    end = journal.end or End({})
    of_updates = [(each.evaluations, sorted(each.others.items())) for each in journal.updates]
    evaluations = [*of_updates, (end.evaluations, sorted(end.others.items()))]
    saved = {(each.path, each.at): dict(each.values) for each in journal.saves if isinstance(each, Saved) and each.done}
    return After(evaluations, saved, printed.splitlines())


def beyond_training(one: After, again: After, other: After) -> Differs | None:
    """What is another of what does not change the training; ``again`` is a second unchanged start."""
    if one.evaluations == again.evaluations and one.evaluations != other.evaluations:
        return Differs("evaluation", None, "models were evaluated otherwise, or gave other outputs")
    steady = {key for key in one.saved.keys() & again.saved.keys() if one.saved[key] == again.saved[key]}
    missing = sorted({path for path, _ in steady - other.saved.keys()})
    more = sorted({path for path, _ in other.saved.keys() - one.saved.keys()})
    if one.saved.keys() != again.saved.keys():
        more = []  # such names are of each start's own: they have the time in them
    changed = sorted({key[0] for key in steady & other.saved.keys() if one.saved[key] != other.saved[key]})
    if missing or more or changed:
        return Differs(
            "saved", None, few([_name(path) for path in dict.fromkeys((*changed, *more, *missing))], NAMES_SHOWN)
        )
    noisy = {_shape(line) for line in one.printed if line not in again.printed}
    lines = [line for line in one.printed if _shape(line) not in noisy]
    lost = [line for line in lines if line not in other.printed]
    new = [line for line in other.printed if _shape(line) not in {_shape(each) for each in one.printed}]
    if lost or new:
        return Differs("printed", None, (lost or new)[0].strip()[:80])
    return None


def _name(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2]


def _shape(line: str) -> str:
    return NUMBER.sub("#", line)
