"""Two run records side by side: what they were given, and the first update in which they part.

A record keeps digests of tensors and not the tensors: what differs is named, how much of it and why is told only when
the runs are made again.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.compare.differences import (
    HYPER,
    INITIAL,
    KERNEL,
    ORDER,
    OTHER,
    RANDOM,
    CompareReport,
    Difference,
    Rung,
    beside,
)
from harness.digests import differing
from harness.documented_run.record import FILE_NAME, Digests, RunRecord, TensorDigests
from harness.findings import DOCUMENTED_ADAMW

ROUNDING = 64 * 2**-23
"""Largest difference, as a share, that is taken for rounding in the first update that differs, in float32."""

CAUSES: dict[str, str] = {
    "seed": RANDOM,
    "shuffle": ORDER,
    **dict.fromkeys(("dataset", "text_columns", "label_column", "label_names", "num_labels"), OTHER),
    **dict.fromkeys(("checkpoint", "pretrained", "vocabulary", "loop"), OTHER),
}
"""Field of a recipe to the cause that a difference in it is; other fields are hyper-parameters."""

NAMES = ("name", "data")
"""Fields that name what ``inputs`` tells by its content."""


def is_record(name: str) -> bool:
    """Whether this is a run's record, or the folder that it lies in."""
    path = Path(name)
    return path.suffix == ".json" or (path / FILE_NAME).exists()


def compare_records(a: str, b: str) -> CompareReport:
    """What two runs were given otherwise, and where their curves part.

    Raises:
        CannotTry: one of them is no run record.
    """
    return compared(a, RunRecord.read(Path(a)), b, RunRecord.read(Path(b)))


def compared(a: str, one: RunRecord, b: str, other: RunRecord) -> CompareReport:
    """The same of records that were read; ``a`` and ``b`` name them."""
    report = CompareReport(a, b, updates=min(one.updates, other.updates))
    found = [*_recipes(one.recipe, other.recipe), *_of_trainer(one, other)]
    found += [
        Difference(OTHER, "content", 1, f"what {name} held", (one.inputs[name][:12], other.inputs[name][:12]))
        for name in one.inputs
        if name in other.inputs and one.inputs[name] != other.inputs[name]
    ]
    report.beside = beside(one.fingerprint, other.fingerprint)
    found += _schedule(one.curves.lr, other.curves.lr)
    if one.digests and other.digests:
        found += _drawn(one.digests, other.digests)
    apart = _apart(one, other)
    if apart is not None:
        cause = next((each.what for each in found if each.update <= apart.update), None)
        found.append(replace(apart, explained_by=cause))
    if one.updates != other.updates:
        counts = f"{one.updates}", f"{other.updates}"
        found.append(Difference(HYPER, "window", report.updates + 1, "the number of updates", counts))
    scores = _metrics(one, other)
    if found:  # then it is no wonder
        report.notes += [f"{name} {mine} against {theirs}" for name, (mine, theirs) in scores.items()]
    else:
        found += [Difference(OTHER, "metrics", max(report.updates, 1), *each) for each in scores.items()]
    report.differences = sorted(found, key=lambda each: each.update)
    return report


def _recipes(one: Mapping[str, Any], other: Mapping[str, Any]) -> Iterator[Difference]:
    for name in {**one, **other}:
        if name not in NAMES and one.get(name) != other.get(name):
            yield Difference(CAUSES.get(name, HYPER), "options", 1, name, (str(one.get(name)), str(other.get(name))))


def _of_trainer(one: RunRecord, other: RunRecord) -> Iterator[Difference]:
    """Where Trainer differs from the plain loop, which the other one is."""
    with_trainer = [each.recipe.get("loop") == "trainer" for each in (one, other)]
    if with_trainer[0] == with_trainer[1]:
        return
    for difference in one.differences or other.differences:
        if difference.there != difference.by_hand and difference.what != DOCUMENTED_ADAMW:
            values = (
                (difference.there, difference.by_hand) if with_trainer[0] else (difference.by_hand, difference.there)
            )
            yield Difference(ORDER if difference.what == "data order" else HYPER, "options", 1, difference.what, values)


def _schedule(one: Sequence[float], other: Sequence[float]) -> Iterator[Difference]:
    if (first := _first(one, other)) is not None:
        yield Difference(HYPER, "options", first + 1, "lr", (f"{one[first]:.9g}", f"{other[first]:.9g}"))


def _drawn(one: Digests, other: Digests) -> Iterator[Difference]:
    """The first weights, the rows and the random numbers."""
    if one.tensors and other.tensors and (names := differing(one.tensors[0].weights, other.tensors[0].weights)):
        yield Difference(INITIAL, "model", 1, "the first weights", (), tuple(names))
    if (first := _first(one.rows, other.rows)) is not None:
        seen = [{row for update in each.rows for row in update.split()} for each in (one, other)]
        if seen[0] & seen[1]:
            yield Difference(ORDER, "rows", first + 1, "the order of the rows")
        else:
            yield Difference(OTHER, "content", first + 1, "the rows, of which the two runs share none,")
    if (first := _first(one.random, other.random)) is not None:
        yield Difference(RANDOM, "random", first + 1, "the random numbers")


def _apart(one: RunRecord, other: RunRecord) -> Difference | None:
    """The first that is computed otherwise, where nothing that was given explains it."""
    size = _size(one, other)
    cause = KERNEL if size is not None and size <= ROUNDING else OTHER
    if places := list(_places(one, other)):
        update, _, rung, what, values, tensors = min(places)
        return Difference(cause, rung, update, what, values, tensors, size, None if size is None else ROUNDING)
    if one.updates == other.updates and one.weights and other.weights and one.weights != other.weights:
        return Difference(cause, "step", one.updates, "the weights at the end")
    return None


Place = tuple[int, int, Rung, str, tuple[str, str] | tuple[()], tuple[str, ...]]
"""Update, place within it, rung, what, its values, tensors."""


def _places(one: RunRecord, other: RunRecord) -> Iterator[Place]:
    """Place of the first difference in each thing that is computed."""
    curves: tuple[tuple[int, Rung, str, list[float], list[float]], ...] = (
        (1, "loss", "the loss", one.curves.loss, other.curves.loss),
        (3, "gradients", "the gradients' norm", one.curves.grad_norm, other.curves.grad_norm),
    )
    for place, rung, what, mine, theirs in curves:
        if (first := _first(mine, theirs)) is not None:
            yield first + 1, place, rung, what, (f"{mine[first]:.9g}", f"{theirs[first]:.9g}"), ()
    for kept, others in _kept_by_both(one, other):
        if names := differing(kept.gradients, others.gradients):
            yield kept.update, 2, "gradients", "the gradients", (), tuple(names)
        if kept.update > 1 and (names := differing(kept.weights, others.weights)):
            which = "the update" if kept.update == 2 else "the update or one before it"
            yield kept.update - 1, 4, "step", which, (), tuple(names)


def _kept_by_both(one: RunRecord, other: RunRecord) -> Iterator[tuple[TensorDigests, TensorDigests]]:
    if one.digests and other.digests:
        yield from zip(one.digests.tensors, other.digests.tensors, strict=False)


def _size(one: RunRecord, other: RunRecord) -> float | None:
    """How far apart the first losses or norms are that differ, as a share; None where all are the same."""
    found = []
    for mine, theirs in ((one.curves.loss, other.curves.loss), (one.curves.grad_norm, other.curves.grad_norm)):
        if (first := _first(mine, theirs)) is not None:
            apart = abs(mine[first] - theirs[first]) / abs(mine[first]) if mine[first] else math.inf
            found.append((first, apart))
    return min(found)[1] if found else None


def _metrics(one: RunRecord, other: RunRecord) -> dict[str, tuple[str, str]]:
    """Metrics that differ, each with both values."""
    common = [name for name in one.metrics if name in other.metrics and one.metrics[name] != other.metrics[name]]
    return {name: (f"{one.metrics[name]:.4f}", f"{other.metrics[name]:.4f}") for name in common}


def _first(one: Sequence[Any], other: Sequence[Any]) -> int | None:
    """The place of the first values that differ."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((n for n, (x, y) in pairs if x != y and (x == x or y == y)), None)  # two NaN are the same
