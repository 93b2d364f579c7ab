"""Two run records side by side: what they were given, and the first update in which they part.

A record keeps no tensors: what computed another loss from the same settings is told only when the runs are made again.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.compare.differences import (
    HYPER,
    KERNEL,
    ORDER,
    OTHER,
    RANDOM,
    Cause,
    CompareReport,
    Difference,
    Rung,
    beside,
)
from harness.record import FILE_NAME, RunRecord

ROUNDING = 64 * 2**-23
"""Largest difference, as a share, that is taken for rounding in the first update that differs, in float32."""

CAUSES: dict[str, Cause] = {
    "seed": RANDOM,
    "shuffle": ORDER,
    **dict.fromkeys(("dataset", "text_columns", "label_column", "label_names", "num_labels"), OTHER),
    **dict.fromkeys(("checkpoint", "pretrained", "vocabulary", "loop"), OTHER),
}
"""Of a recipe's fields, but for hyper-parameters."""

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
    one, other = RunRecord.read(Path(a)), RunRecord.read(Path(b))
    report = CompareReport(a, b, updates=min(one.updates, other.updates))
    found = list(_recipes(one.recipe, other.recipe))
    found += [
        Difference(OTHER, "content", 1, f"what {name} held", (one.inputs[name][:12], other.inputs[name][:12]))
        for name in one.inputs
        if name in other.inputs and one.inputs[name] != other.inputs[name]
    ]
    report.beside = beside(one.fingerprint, other.fingerprint)
    found += _curves(one, other, explained=bool(found))
    if one.updates != other.updates:
        counts = f"{one.updates}", f"{other.updates}"
        found.append(Difference(HYPER, "window", report.updates + 1, "the number of updates", counts))
    for name in one.metrics:
        if name in other.metrics and one.metrics[name] != other.metrics[name]:
            values = f"{one.metrics[name]:.4f}", f"{other.metrics[name]:.4f}"
            report.notes.append(f"{name} {values[0]} against {values[1]}")
    report.differences = sorted(found, key=lambda each: each.update)
    return report


def _recipes(one: Mapping[str, Any], other: Mapping[str, Any]) -> Iterator[Difference]:
    for name in {**one, **other}:
        if name not in NAMES and one.get(name) != other.get(name):
            yield Difference(CAUSES.get(name, HYPER), "options", 1, name, (str(one.get(name)), str(other.get(name))))


def _curves(one: RunRecord, other: RunRecord, *, explained: bool) -> Iterator[Difference]:
    """The learning rates, and the first loss or gradient norm that differs, where no setting does."""
    if (first := _first(one.curves.lr, other.curves.lr)) is not None:
        values = one.curves.lr[first], other.curves.lr[first]
        yield Difference(HYPER, "options", first + 1, "lr", (f"{values[0]:.9g}", f"{values[1]:.9g}"))
        explained = True
    curves: tuple[tuple[str, Rung, list[float], list[float]], ...] = (
        ("the loss", "loss", one.curves.loss, other.curves.loss),
        ("the gradients' norm", "gradients", one.curves.grad_norm, other.curves.grad_norm),
    )
    for what, rung, mine, theirs in curves:
        first = _first(mine, theirs)
        if first is None:
            continue
        size = abs(mine[first] - theirs[first]) / abs(mine[first]) if mine[first] else math.inf
        if not explained:
            cause = KERNEL if size <= ROUNDING else OTHER
            values = mine[first], theirs[first]
            shown = f"{values[0]:.9g}", f"{values[1]:.9g}"
            yield Difference(cause, rung, first + 1, what, shown, (), size, ROUNDING)
        return


def _first(one: Sequence[float], other: Sequence[float]) -> int | None:
    """The place of the first values that differ."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((n for n, (x, y) in pairs if x != y and not (math.isnan(x) and math.isnan(y))), None)
