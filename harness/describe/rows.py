"""Rows: those that models were given, told apart by their content wherever they come from."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
import xxhash

from harness.describe.description import Line
from harness.describe.lines import BITS, Section, line, listed, number, spread
from harness.findings import count
from harness.watch.events import (
    Backward,
    BackwardBegins,
    End,
    Forward,
    InnerForward,
)
from harness.watch.facts.called_models import ModelNames, OptimizedModels, PendingForwards, is_one_row
from harness.watch.run.batches import LABELS, NOT_CONTENT
from harness.watch.run.rows import blind, of_rows

MOST_ROWS = 200_000
"""Different rows of a model that are told apart, in eight bytes each: more are said to be more."""

MOST_VALUES = 1_000_000
"""Numbers of the inputs of which the mean and the deviation are taken: the first ones tell the scale."""

COLUMNS = f"columns{BITS}"
"""Fact with a digest of the values of each column of the inputs, whatever the order of the rows."""

MOST_COLUMNS = 32
"""Columns of which there are digests: tables have them, and with more the fact is too long to be read."""


@dataclass(eq=False)
class _Scale:
    """The numbers of inputs, the first ones."""

    values: int = 0
    total: float = 0.0
    squares: float = 0.0

    def add(self, values: int, total: float, squares: float) -> None:
        if self.values < MOST_VALUES:
            self.values += values
            self.total += total
            self.squares += squares

    @property
    def mean(self) -> float:
        return self.total / self.values

    @property
    def deviation(self) -> float:
        return math.sqrt(max(0.0, self.squares / self.values - self.mean**2))

    def facts(self) -> dict[str, float]:
        return {"mean": float(f"{self.mean:.3g}"), "deviation": float(f"{self.deviation:.3g}")}

    def __str__(self) -> str:
        return f"mean {number(self.mean)}, deviation {number(self.deviation)}"


@dataclass(eq=False)
class _Given:
    """What one call of a model was given."""

    rows: _RowsGiven
    digests: list[bytes]
    where: str | None
    shape: str
    width: int | None
    """Width of two-dimensional inputs."""
    arguments: list[str] = field(default_factory=list)
    """All that has dimensions, and what is within lists."""
    scale: tuple[int, float, float] | None = None
    """Count, sum and sum of squares of the numbers of real inputs."""
    columns: np.ndarray[Any, Any] | None = None
    """A sum for each column of real inputs of two dimensions, which tells its values from others."""
    tokens: list[bytes] = field(default_factory=list)
    hidden: int = 0


@dataclass(eq=False)
class _RowsGiven:
    """The rows that a model was given, for updates and otherwise."""

    name: str
    trained: dict[bytes, int] = field(default_factory=dict)
    """How often each came that was differentiated."""
    evaluated: dict[bytes, int] = field(default_factory=dict)
    given: int = 0
    evaluations: int = 0
    where: str | None = None
    evaluated_where: str | None = None
    shape: str = ""
    tokens: Any = None
    """A running digest of the whole numbers that came, in their order."""
    hidden: int = 0
    """Tokens that an attention mask hides."""
    with_targets: int = 0
    """What tells the rows with their targets from the same rows with others: a sum, in no order."""
    targets: int = 0
    """Rows whose targets are known."""
    widths: list[int] = field(default_factory=list)
    """Smallest and largest width of two-dimensional inputs."""
    arguments: set[str] = field(default_factory=set)
    asked: int = 0
    """What tells the rows of the calls without an update: a sum, in no order."""
    scales: dict[str, _Scale] = field(default_factory=dict)
    """Scales of real inputs, of the rows that were trained on and of the others."""
    columns: dict[str, np.ndarray[Any, Any] | None] = field(default_factory=dict)
    """The same with what tells the values of each column from others; None where calls do not have the same columns."""
    too_many: bool = False


class Rows(Section):
    """Which rows models were given, wherever they come from: told apart by their content."""

    def begin(self) -> None:
        self._rows: dict[int, _RowsGiven] = {}
        self._inner: dict[str, _RowsGiven] = {}
        self._waiting = PendingForwards[_Given]()
        self._names, self._optimized = self.monitor.fact(ModelNames), self.monitor.fact(OptimizedModels)

    def on_forward(self, event: Forward) -> None:
        given = {name: each for name, each in of_rows(event).items() if name not in LABELS}
        given = {name: each for name, each in given.items() if each.dim() > 1 or name not in NOT_CONTENT}
        if not given:
            return
        if is_one_row(event, next(iter(given.values()))):
            given = {name: each[None] for name, each in given.items()}
        key = self.monitor.number_of(event.model)
        rows = self._rows.setdefault(key, _RowsGiven(self._names.of(event.model)))
        call = self._measured(rows, given, event.where, differentiable=event.gradients)
        beside = [name for name, each in event.tensors.items() if name not in LABELS and each.dim()]
        call.arguments = [*dict.fromkeys([*beside, *given])]
        if event.gradients:
            self._waiting[event.number] = call
        else:
            self._evaluates(call)

    def on_inner_forward(self, event: InnerForward) -> None:
        """What a model of the script's own gives the pretrained model in it."""
        rows = self._inner.setdefault(type(event.model).__name__, _RowsGiven(type(event.model).__name__))
        rows.where = rows.where or event.where
        rows.arguments |= event.tensors.keys()
        mask = event.tensors.get("attention_mask")
        rows.hidden += 0 if mask is None else int((mask == 0).sum())

    def on_backward_begins(self, event: BackwardBegins) -> None:
        """Rows and their targets, where one loss has as many targets as the only model had rows."""
        waiting = [self._waiting[each.number] for each in event.forwards if each.number in self._waiting]
        if len(waiting) != 1:
            return
        rows, digests = waiting[0].rows, waiting[0].digests
        for call in event.losses:
            whole = not call.target.is_floating_point() or bool((call.target == call.target.round()).all())
            # What another model computes is rounded otherwise on another machine.
            if whole and call.target.dim() and len(call.target) == len(digests):
                for pair in zip(digests, blind([call.target.float()]), strict=True):
                    rows.with_targets = (rows.with_targets + xxhash.xxh3_64_intdigest(b"".join(pair))) % 2**64
                rows.targets += len(digests)

    def on_backward(self, event: Backward) -> None:
        for call in self._waiting.reached(event.reached):
            self._trains(call)
        for call in self._waiting.given_up():
            self._evaluates(call)

    def on_end(self, event: End) -> None:
        for call in self._waiting.given_up(0):
            self._evaluates(call)

    def _trains(self, call: _Given) -> None:
        rows = call.rows
        rows.where, rows.shape = rows.where or call.where, rows.shape or call.shape
        rows.given += len(call.digests)
        rows.arguments |= set(call.arguments)
        rows.hidden += call.hidden
        if call.width is not None:
            widths = call.width, *rows.widths
            rows.widths = [min(widths), max(widths)]
        for token in call.tokens:
            rows.tokens = rows.tokens or xxhash.xxh3_64()
            rows.tokens.update(token)
        self._keep(rows, rows.trained, call, "trained")

    def _evaluates(self, call: _Given) -> None:
        rows = call.rows
        rows.evaluated_where = rows.evaluated_where or call.where
        rows.evaluations += len(call.digests)
        for each in call.digests:
            rows.asked = (rows.asked + int.from_bytes(each)) % 2**64
        self._keep(rows, rows.evaluated, call, "asked")

    def _keep(self, rows: _RowsGiven, kept: dict[bytes, int], call: _Given, when: str) -> None:
        if call.scale is not None:
            rows.scales.setdefault(when, _Scale()).add(*call.scale)
        before = rows.columns.setdefault(when, call.columns)
        if before is not call.columns:
            rows.columns[when] = None
            if before is not None and call.columns is not None and before.shape == call.columns.shape:
                rows.columns[when] = before + call.columns
        for digest in call.digests:
            if digest in kept or len(kept) < MOST_ROWS:
                kept[digest] = kept.get(digest, 0) + 1
            else:
                rows.too_many = True

    def _measured(
        self, rows: _RowsGiven, given: dict[str, torch.Tensor], where: str | None, *, differentiable: bool
    ) -> _Given:
        first = next((each for each in given.values() if each.dtype is not torch.bool), next(iter(given.values())))
        whole = [each for each in given.values() if not each.is_floating_point() and not each.is_complex()]
        mask = given.get("attention_mask")
        call = _Given(
            rows,
            list(_digests(given)),
            where,
            f"{'x'.join(map(str, first.shape[1:])) or 'one number'} {_type(first)}",
            first.shape[1] if first.dim() == 2 else None,
            tokens=[_bytes(each) for each in whole],
            hidden=0 if mask is None else int((mask == 0).sum()),
            columns=_columns(first),
        )
        known = rows.scales.get("trained" if differentiable else "asked")
        if first.is_floating_point() and (known is None or known.values < MOST_VALUES):
            values = first.detach().double()
            call.scale = values.numel(), float(values.sum()), float(values.square().sum())
        return call

    def lines(self) -> Iterator[Line]:
        for model, rows in self._rows.items():
            if rows.trained:
                yield self._trained(rows, "trained" if self._optimized.has(model) else "differentiated")
            if rows.trained and rows.evaluated:
                yield self._evaluated(rows)
        for name, rows in self._inner.items():
            text = f"{name} within it is given {listed(sorted(rows.arguments), 6)}"
            yield line("data", text, {"arguments": sorted(rows.arguments), "hidden": rows.hidden}, rows.where, of=name)

    def _trained(self, rows: _RowsGiven, how: str) -> Line:
        different, times = len(rows.trained), list(rows.trained.values())
        facts: dict[str, Any] = {"given": rows.given, "different": different, "times_each": [min(times), max(times)]}
        facts |= {"first": rows.shape, "widths": rows.widths}
        shape = rows.shape
        if len(set(rows.widths)) > 1:
            shape = f"{spread(rows.widths)} {rows.shape.rpartition(' ')[2]}"
        text = f"{rows.name} was {how} on {count(different, 'different row' if different > 1 else 'row')}"
        text += " or more" if rows.too_many else ""
        if max(times) > 1:
            text += f", each {spread(times)} times" if different > 1 else f", {times[0]} times"
        text += f"; inputs of {shape}"
        if (scale := rows.scales.get("trained")) is not None:
            facts |= scale.facts()
            text += f", {scale}"
        facts |= _column_facts(rows.columns.get("trained"))
        facts["arguments"] = sorted(rows.arguments)
        if rows.tokens is not None:
            facts |= {"digest": rows.tokens.hexdigest(), "hidden": rows.hidden}
        if rows.targets:
            bits = BITS if rows.scales else ""
            facts |= {f"with_targets{bits}": f"{rows.with_targets:016x}", "targets": rows.targets}
        return line("data", text, facts, rows.where, of=rows.name)

    def _evaluated(self, rows: _RowsGiven) -> Line:
        shared = len(rows.trained.keys() & rows.evaluated.keys())
        different = len(rows.evaluated)
        facts: dict[str, Any] = {"rows": rows.evaluations, "different": different, "trained_on_too": shared}
        facts[f"digest{BITS if rows.scales else ''}"] = f"{rows.asked:016x}"
        if (scale := rows.scales.get("asked")) is not None:
            facts |= scale.facts()
        facts |= _column_facts(rows.columns.get("asked"))
        which = {0: "none of them", different: "all of them"}.get(shared, f"{shared:,} of them")
        text = f"{rows.name} was evaluated on {count(different, 'row')}; it was trained on {which}"
        return line("data", text, facts, rows.evaluated_where, of=f"{rows.name}.asked")


def _columns(given: torch.Tensor) -> np.ndarray[Any, Any] | None:
    """A sum for each column of a table of real numbers, which is the same in every order of the rows."""
    if not given.is_floating_point() or given.dim() != 2 or given.shape[1] > MOST_COLUMNS:
        return None
    bits = (given.detach().float() + 0.0).numpy(force=True).copy().view(np.uint32).astype(np.uint64)  # -0.0 is 0.0
    bits += np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):  # SplitMix64
        bits = (bits ^ (bits >> np.uint64(shift))) * np.uint64(factor)
    sums: np.ndarray[Any, Any] = (bits ^ (bits >> np.uint64(31))).sum(0, dtype=np.uint64)
    return sums


def _column_facts(columns: np.ndarray[Any, Any] | None) -> dict[str, Any]:
    return {} if columns is None else {COLUMNS: [f"{int(each) >> 32:08x}" for each in columns]}


def _bytes(tokens: torch.Tensor) -> bytes:
    """A digest of whole numbers, in their order."""
    return xxhash.xxh3_64_digest(tokens.detach().to("cpu", torch.int64).contiguous().numpy().tobytes())


def _type(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def _digests(given: dict[str, torch.Tensor]) -> Iterator[bytes]:
    """A digest of each row of what a model was given; of tokens without what the attention mask hides."""
    rows, mask = len(next(iter(given.values()))), given.get("attention_mask")
    beside = [each for name, each in given.items() if name != "attention_mask" and len(each) == rows]
    hidden = [
        each if mask is None or each.shape != mask.shape or each.is_floating_point() else each.masked_fill(mask == 0, 0)
        for each in beside
    ]
    return blind(each for each in hidden if not each.is_complex())
