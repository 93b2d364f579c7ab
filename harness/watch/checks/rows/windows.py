from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.utils.data import Subset

from harness.watch.bounded import MOST, FirstByKey
from harness.watch.check import HELD, Check, Found, Verdict
from harness.watch.events import Batch, End
from harness.watch.run.batches import tensors_in
from harness.watch.run.passes import Passes
from harness.watch.run.rows import MOST_VALUES

ENOUGH_PAIRS = 4
"""Neighbours that must be a step apart, and vary."""

MIN_SHARE = 0.5
"""Smallest share of the evaluated windows that must overlap. Half or double of it changes verdicts
(scripts/records/margins.json)."""

MOST_WINDOWS = 4 * MOST
"""Rows of a dataset that are kept, to compare neighbours: of some hundred rows in random order some are."""

MOST_NUMBERS = 8 * MOST_VALUES
"""Numbers of a row that is kept: a window of several series is larger than other rows."""


class WindowsOverlap(Check):
    """Windows of the evaluation overlap windows of the training: they were split at random, and not in time.

    ## Why is this a bug?
    Each window of a series shares all but one of its values with the next one. Drawn at random, nearly every window of
    the validation set lies between two that were trained on, its targets among them: the score says how well the model
    remembers, and not how well it will do on what comes next.

    ## What to do
    Cut the series in time first, then make windows of each part; leave a gap of one window between the parts.

    With one dataset, `Subset(data, range(cut - length))` and `Subset(data, range(cut, len(data)))` are such parts.

    ## When it is right
    Ignore this warning if the model is to fill in what lies between known values. Rows are taken for windows only if
    each that was seen is the one before it, moved by one step; windows with larger steps, and splits that share only
    the windows at a cut, are not reported.

    ## References
    - https://scikit-learn.org/stable/modules/cross_validation.html#time-series-split
    """

    severity = "warning"
    new_since = "0.4.0"

    needs = "windows of one series in training and evaluation"

    def begin(self) -> None:
        self._passes = self.fact(Passes)
        self._kept = FirstByKey[int, dict[int, torch.Tensor]](8)
        """Id of a dataset that parts are taken of, and the place in it, to some of its rows."""

    def on_batch(self, event: Batch) -> None:
        of, indices = event.of, event.indices
        if of.number > 1 or not isinstance(of.dataset, Subset) or not isinstance(event.samples, list):
            return
        if not isinstance(indices, list) or len(indices) != len(event.samples):
            return
        whole, places = _places(of.dataset, indices)
        kept = self._kept.setdefault(id(whole), {}) if self._kept.takes(id(whole)) else {}
        for place, sample in zip(places, event.samples[: MOST_WINDOWS - len(kept)], strict=False):
            row = next((each for _, each in tensors_in(sample) if each.dim()), None)
            if row is not None and len(row) > 2 and row.numel() <= MOST_NUMBERS:
                kept[place] = row.detach().clone()

    def on_end(self, event: End) -> None:
        trained: dict[int, set[int]] = {}
        for loop in self._passes.training():
            if isinstance(loop.first.dataset, Subset):
                whole, places = _places(loop.first.dataset, range(len(loop.first.dataset)))
                trained.setdefault(id(whole), set()).update(places)
        for loop in self._passes.evaluating():
            if not isinstance(loop.first.dataset, Subset):
                continue
            whole, places = _places(loop.first.dataset, range(len(loop.first.dataset)))
            others, length = trained.get(id(whole), set()), self._length(id(whole))
            if length and others and others.isdisjoint(places):
                overlapping = sum(place - 1 in others or place + 1 in others for place in places)
                self.says(self.judge(len(places), overlapping, length), loop.first.where)

    def _length(self, whole: int) -> int:
        """Steps of a window; 0 where neighbours are no windows of one series."""
        kept = self._kept.get(whole, {})
        pairs = [(row, kept[place + 1]) for place, row in kept.items() if place + 1 in kept]
        alike = all(_is_a_step_on(*pair) for pair in pairs)
        varied = sum(bool((one != one[:1]).any()) for one, _ in pairs)
        return len(pairs[0][0]) if alike and varied >= ENOUGH_PAIRS else 0

    @staticmethod
    def judge(rows: int, overlapping: int, length: int) -> Verdict:
        """Of windows of so many steps that were evaluated, those whose neighbour, a step before or behind, was trained
        on."""
        if overlapping < MIN_SHARE * rows:
            return HELD
        return Found(
            expected="windows of an evaluation that share no value with those of the training",
            observed=f"{overlapping} of the {rows} windows of {length} steps are one step from a window "
            "that was trained on",
        )


def _is_a_step_on(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether a window is the one before it, moved by one step; each may have a level of its own taken from it."""
    if one.shape != other.shape:
        return False
    if not one.is_floating_point():
        return torch.equal(one[1:], other[:-1])
    apart, spread = (one[1:] - other[:-1]).double(), float((one.double() - one.double().mean(0)).abs().max())
    # Where a level was taken from each, half of the digits are what rounding leaves for sure.
    most: float = torch.finfo(one.dtype).eps ** 0.5 * spread
    return float((apart - apart.mean(0)).abs().max()) <= most


def _places(dataset: Any, indices: Sequence[int]) -> tuple[Any, list[int]]:
    """The dataset that a part is of, and the places in it of rows of the part."""
    places = list(indices)
    while isinstance(dataset, Subset):
        places, dataset = [int(dataset.indices[place]) for place in places], dataset.dataset
    return dataset, places
