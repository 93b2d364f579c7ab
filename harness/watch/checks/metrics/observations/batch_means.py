"""Batch means: the mean losses of an evaluation's batches, and which mean of theirs a script holds when it is over."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import nn

from harness.watch.events import Fact, Forward, Pass, PassEnds, Scored
from harness.watch.facts.labels_given import labelled
from harness.watch.recogniser import Recogniser

MIN_BATCHES = 3
"""Batches of an evaluation: by reasoning, the sum of two losses may be some other number."""

MOST_BATCHES = 4096
"""Batches whose losses are kept, and numbers of one list that are read."""

MIN_SPREAD = 1.25
"""Times that the batch with the most targets must have those of the one with the fewest, but for the last batch, which
is smaller in every evaluation. By reasoning: with less, the two means are alike."""

MIN_DIFFERENCE = 0.01
"""Smallest difference of the two means, as a share, that is reported. Below it nobody would decide by it. Half or
double of it changes verdicts (scripts/records/margins.json)."""

ROUNDING = 1e-5
"""Largest difference between a number of the script's and the one that it is taken for, as a share: half of what is
added up in float32 is rounded."""

JUDGED = 3
"""Evaluations that are judged."""

FRAMES = 3
"""Functions of the script, the innermost first, whose variables are read when an evaluation is over."""


class BatchLoss(NamedTuple):
    """The mean loss of one batch, and of how many targets, in how many rows."""

    loss: torch.Tensor
    targets: torch.Tensor
    rows: int
    where: str | None


class BatchMeans(Fact):
    """An evaluation of rows with several targets is over, and the two means of its losses differ.

    Told of the first few. ``where`` its last loss was computed.
    """

    needs = "evaluation of three batches with different numbers of targets"
    of_run = True
    means: Sequence[float]
    """The mean loss of each batch."""
    targets: Sequence[int]
    """Targets in each batch."""
    reported: bool = False
    """Whether the script holds the mean of the means, or what comes of it, and not the mean over all targets."""

    @property
    def plain(self) -> float:
        """The mean of the means."""
        return sum(self.means) / len(self.means)

    @property
    def weighted(self) -> float:
        """The mean over all targets."""
        return sum(mean * n for mean, n in zip(self.means, self.targets, strict=True)) / sum(self.targets)


class MeansOfBatches(Recogniser):
    makes = (BatchMeans,)

    def begin(self) -> None:
        self._parts: WeakKeyDictionary[Pass, dict[int, BatchLoss]] = WeakKeyDictionary()
        self._judged = 0

    def on_forward(self, event: Forward) -> None:
        if event.loss is None or event.loss.dim() or self._of(event) is None:
            return
        counted = [each.counted.sum() for each in labelled(event)]
        if counted:
            self._keep(event, event.loss, counted[0], event.where)

    def on_scored(self, event: Scored) -> None:
        call = event.loss
        if call is None or call.ignored is None or self._of(event.forward) is None:
            return
        if call.is_mean and not call.is_weighted:
            self._keep(event.forward, call.value, call.counted.sum(), call.where)

    def _of(self, forward: Forward) -> Pass | None:
        """The evaluation that a forward is a part of."""
        if forward.gradients or forward.batch is None or forward.batch.of.trains or self._judged == JUDGED:
            return None
        return forward.batch.of

    def _keep(self, forward: Forward, loss: torch.Tensor, targets: torch.Tensor, where: str | None) -> None:
        if (of := self._of(forward)) is None or forward.batch is None:
            return
        parts = self._parts.setdefault(of, {})
        rows = max((len(tensor) for tensor in forward.tensors.values() if tensor.dim()), default=0)
        if forward.batch.number not in parts and len(parts) < MOST_BATCHES:
            parts[forward.batch.number] = BatchLoss(loss.detach(), targets, rows, where)

    def on_pass_ends(self, event: PassEnds) -> None:
        parts = list(self._parts.pop(event.of, {}).values())
        if len(parts) < MIN_BATCHES or len(parts) == MOST_BATCHES or self._judged == JUDGED:
            return
        means, targets = [float(part.loss) for part in parts], [int(part.targets) for part in parts]
        if all(part.rows == 1 for part in parts):
            return  # each text counts the same, which may be meant
        if not all(targets) or max(targets[:-1]) < MIN_SPREAD * min(targets[:-1]):
            return
        told = BatchMeans(means=means, targets=targets, where=parts[-1].where)
        plain, weighted = told.plain, told.weighted
        if abs(plain - weighted) <= MIN_DIFFERENCE * abs(weighted):
            return  # nobody can tell by which of the two the script reports
        self._judged += 1
        numbers = list(self._numbers())
        by_rows = [mean * part.rows for mean, part in zip(means, parts, strict=True)]
        right = weighted, weighted * sum(targets), math.exp(min(weighted, 500))
        wrong = plain, sum(means), math.exp(min(plain, 500)), sum(by_rows)
        reported = not any(_is_among(each, numbers) for each in right) and (
            any(_is_among(each, numbers) for each in wrong) or any(_is_list_of(means, each) for each in numbers)
        )
        self.tell(replace(told, reported=reported))

    def _numbers(self) -> Iterator[float | list[float]]:
        """The numbers, and lists of them, that the script's functions hold at the moment, or their objects do."""
        for variables in self.monitor.locator.variables(FRAMES):
            for value in variables.values():
                yield from _numbers_in(value, deep=True)


def _numbers_in(value: Any, *, deep: bool) -> Iterator[float | list[float]]:
    number = _number(value)
    if number is not None:
        yield number
    elif isinstance(value, (list, tuple)) and MIN_BATCHES <= len(value) <= MOST_BATCHES:
        found = [_number(each) for each in value]
        if None not in found:
            yield [each for each in found if each is not None]
    elif deep and not isinstance(value, (nn.Module, torch.Tensor, type)):
        held = value if isinstance(value, Mapping) else _attributes(value)
        for each in list(held.values()) if isinstance(held, Mapping) else ():
            yield from _numbers_in(each, deep=False)


def _attributes(value: Any) -> Any:
    """An object's own attributes; None where it has none, or is a proxy that cannot say."""
    try:
        return object.__getattribute__(value, "__dict__")
    except AttributeError:
        return None


def _number(value: Any) -> float | None:
    if isinstance(value, torch.Tensor):
        return float(value) if value.numel() == 1 and not value.is_meta else None
    return float(value) if isinstance(value, (int, float, np.number)) and not isinstance(value, bool) else None


def _is_among(number: float, numbers: list[float | list[float]]) -> bool:
    return any(isinstance(each, float) and math.isclose(each, number, rel_tol=ROUNDING) for each in numbers)


def _is_list_of(means: list[float], numbers: float | list[float]) -> bool:
    return (
        isinstance(numbers, list)
        and len(numbers) == len(means)
        and all(math.isclose(a, b, rel_tol=ROUNDING) for a, b in zip(numbers, means, strict=True))
    )
