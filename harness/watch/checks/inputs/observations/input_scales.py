"""Input scales: how large the numbers are that a model is trained on, and evaluated on, by row and by column."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from harness.watch.bounded import FirstByKey
from harness.watch.events import Backward, End, Fact, Forward
from harness.watch.host import on_host
from harness.watch.recogniser import Recogniser
from harness.watch.run.evaluations import ScoredCall

ROW_SCALE_FACTOR = 20
"""Times that rows of an evaluation must be larger, or smaller, than any of training. Pixels of 0 to 255 beside 0 to 1
are 255 times, those that are standardised some 120 times; a test outside the range of training is seldom 10 times."""

MIN_STANDARDISED = 256
"""Rows of training that show that their columns are standardised."""

MOST_ROWS = 4096
"""Rows that tell the moments of columns."""

MIN_EVALUATED = 32
"""Rows of an evaluation that have a mean and a deviation of their own."""

NEAR_STANDARD = 0.15
"""How far a column's mean may be from 0, and its deviation from 1. More than chance makes of so many rows."""

MAX_DEVIATIONS = 4.0
"""Deviations that a column's mean must be away, or times that its deviation must be larger or smaller, in more than
half of the columns. Seasons and places differ by one or two. Half or double of it changes verdicts
(scripts/records/margins.json)."""

Input = tuple[int, str, tuple[str, ...]]
"""The number of a model, the name of one of its parameters, and the switches that it was called with."""


@dataclass(eq=False)
class Evaluated:
    """Inputs of evaluations, all of another scale."""

    smallest: float
    largest: float
    where: str | None
    update: int
    rows: int = 0


class InputEvaluated(Fact):
    """A run is over in which a model was scored on numbers that it was trained on. ``where`` it was called first."""

    needs = "evaluation of numbers that a model was trained on"
    of_run = True
    name: str
    """Name of the model's parameter."""
    trained: tuple[float, float] = 0.0, 0.0
    """The smallest and the largest root mean square of a row of training."""
    apart: Evaluated | None = None
    """What it was evaluated on; None where in any evaluation most rows were of the scale of training."""


class ColumnsEvaluated(Fact):
    """A run is over in which a model was scored on rows of columns. ``where`` it was called first."""

    of_run = True
    name: str
    """Name of the model's parameter."""
    columns: int
    far: int
    """Columns with a mean or a deviation far from those of training, which are standardised; 0 where they are not."""
    means: str
    """The first, as they are shown."""
    update: int = 0
    """After which it was evaluated first."""


@dataclass(eq=False)
class _Columns:
    """Sums over rows, by column."""

    rows: int = 0
    total: torch.Tensor | None = None
    squares: torch.Tensor | None = None

    def add(self, tensor: torch.Tensor) -> None:
        if self.rows >= MOST_ROWS:
            return
        values = on_host(tensor).cpu().double()
        if self.total is None or self.squares is None:
            self.total = self.squares = values.new_zeros(values.shape[1])
        if len(self.total) == values.shape[1]:
            self.rows += len(values)
            self.total = self.total + values.sum(0)
            self.squares = self.squares + values.square().sum(0)

    @property
    def count(self) -> int:
        return 0 if self.total is None else len(self.total)

    def moments(self) -> tuple[torch.Tensor, torch.Tensor]:
        assert self.total is not None
        assert self.squares is not None
        mean = self.total / self.rows
        return mean, (self.squares / self.rows - mean.square()).clamp(min=0).sqrt()

    def far_from(self, trained: _Columns) -> int:
        """How many columns are, where those of training are standardised; 0 where they are not."""
        if trained.rows < MIN_STANDARDISED or self.rows < MIN_EVALUATED or not 1 < trained.count == self.count:
            return 0
        mean, deviation = trained.moments()
        if bool((mean.abs() > NEAR_STANDARD).any()) or bool(((deviation - 1).abs() > NEAR_STANDARD).any()):
            return 0
        mine, spread = self.moments()
        return int(((mine.abs() > MAX_DEVIATIONS) | (spread > MAX_DEVIATIONS) | (spread < 1 / MAX_DEVIATIONS)).sum())

    def shown(self) -> str:
        mean, _ = self.moments()
        return ", ".join(f"{each:.3g}" for each in mean[:3].tolist())


class InputScales(Recogniser):
    makes = (InputEvaluated, ColumnsEvaluated)

    def begin(self) -> None:
        self._columns = FirstByKey[Input, _Columns]()
        """Columns of the training, where there are two dimensions."""
        self._apart: dict[Input, tuple[_Columns, str | None, int]] = {}
        """Columns of evaluations; where, and after how many updates."""
        self._trained = FirstByKey[Input, tuple[float, float]]()
        """The smallest and the largest root mean square of a row."""
        self._evaluated: dict[Input, Evaluated] = {}
        self._forwards: dict[Input, int] = {}
        """The number of the latest that was scored."""
        self._alike: set[Input] = set()
        """Inputs that were of the scale of training in some evaluation."""

    def on_backward(self, event: Backward) -> None:
        if event.inside_step or not event.at.sampled:
            return
        for forward in event.forwards:
            if forward.number not in event.reached:
                continue
            for key, tensor in self._inputs(forward):
                if tensor.dim() == 2 and self._columns.takes(key):
                    self._columns.setdefault(key, _Columns()).add(tensor)
                scales = _scales(tensor) if self._trained.takes(key) and key not in self._alike else None
                if scales is not None:
                    low, high = self._trained.get(key, (math.inf, 0.0))
                    self._trained[key] = min(low, float(scales.min())), max(high, float(scales.max()))

    def on_scored(self, fact: ScoredCall) -> None:
        if fact.by_row or not self._trained:
            return
        scored = fact.forward
        for key, tensor in self._inputs(scored):
            if key not in self._trained or self._forwards.get(key) == scored.number:
                continue
            self._forwards[key] = scored.number
            if tensor.dim() == 2:
                columns, _, _ = self._apart.setdefault(key, (_Columns(), scored.where, self.monitor.updates_made))
                columns.add(tensor)
            scales, seen = None if key in self._alike else _scales(tensor), self._evaluated.get(key)
            if scales is None:
                continue
            if not self._is_outside(key, scales) or self._was_inside(key):
                self._alike.add(key)
                self._evaluated.pop(key, None)
                continue
            smallest, largest = float(scales.min()), float(scales.max())
            if seen is None:
                seen = self._evaluated[key] = Evaluated(smallest, largest, scored.where, self.monitor.updates_made)
            seen.smallest, seen.largest = min(seen.smallest, smallest), max(seen.largest, largest)
            seen.rows += len(scales)

    def _is_outside(self, key: Input, scales: torch.Tensor) -> bool:
        """Whether most rows are."""
        low, high = self._trained[key]
        outside = (scales < low / ROW_SCALE_FACTOR) | (scales > high * ROW_SCALE_FACTOR)
        return int(outside.sum()) * 2 > len(scales)

    def _was_inside(self, key: Input) -> bool:
        """Whether the model was called on rows of the scale of training on its way to what is scored.

        One that goes on from what it said itself is scored at the end.
        """
        before = [each for each in self.monitor.forwards if not each.gradients]
        given = [_scales(tensor) for forward in before for other, tensor in self._inputs(forward) if other == key]
        return any(scales is not None and not self._is_outside(key, scales) for scales in given)

    def _inputs(self, forward: Forward) -> Iterator[tuple[Input, torch.Tensor]]:
        model = self.monitor.number_of(forward.model)
        given = [*enumerate(forward.args), *forward.kwargs.items()]
        switches = tuple(f"{name}={value}" for name, value in given if isinstance(value, (bool, str)))
        for name, tensor in forward.tensors.items():
            key = model, name, switches
            if not tensor.is_floating_point() or tensor.dim() < 2 or "mask" in name:
                continue
            if len(tensor) and not tensor.is_meta:
                yield key, tensor

    def on_end(self, event: End) -> None:
        for _, name, _ in self._alike:
            self.tell(InputEvaluated(name=name))
        for key, seen in self._evaluated.items():
            self.tell(InputEvaluated(name=key[1], trained=self._trained[key], apart=seen, where=seen.where))
        for key, (columns, where, update) in self._apart.items():
            far = columns.far_from(self._columns[key]) if key in self._columns and key not in self._evaluated else 0
            if far:
                count, means = columns.count, columns.shown()
                self.tell(
                    ColumnsEvaluated(name=key[1], columns=count, far=far, means=means, update=update, where=where)
                )


def _scales(tensor: torch.Tensor) -> torch.Tensor | None:
    """The root mean square of each row that is not all 0; None where there is none."""
    scales = on_host(tensor).float().flatten(1).square().mean(1).sqrt()
    scales = scales[scales.isfinite() & (scales > 0)]
    return scales if len(scales) else None
