from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import torch

from harness.watch.check import Check
from harness.watch.events import Batch, Pass, PassBegins
from harness.watch.facts.batches import content_digest, tensors_in
from harness.watch.monitor import Monitor

MOST_ROWS = 64
"""Rows of a loader that are given again and compared: enough that some come early in the next epoch. Neither half nor
double of it changes a verdict of the corpus."""

MOST_VALUES = 250_000
"""Numbers in them, about: a megabyte."""

ENOUGH_ROWS = 4
"""Smallest number of rows that must have come again, and all have changed. A script that writes rows itself while it
trains does not write all of them in the order in which they come. Neither half nor double of it changes a verdict of
the corpus."""


@dataclass
class Kept:
    """A row as it was given: memory that may be the dataset's own."""

    row: torch.Tensor
    digest: bytes

    def is_unchanged(self) -> bool:
        return content_digest(self.row) == self.digest


class ChangedInPlace(Check):
    """The dataset changes the rows that it keeps each time it gives them.

    ## Why is this a bug?
    `row = self.data[index]` is not a copy of an array or a tensor but a view of it: `row /= 255` or `row.sub_(mean)`
    changes the data itself. The first epoch is correct. In the second each row is scaled once more, and so on, until
    all are zero or infinite; an evaluation on such a dataset gets different inputs each time.

    ## What to do
    Make a new row in __getitem__: row = self.data[index] / 255, or take a copy() or clone() first.

    ## When it is right
    Rows that a dataset makes anew, that are changed at random on the way, or that the script writes between the epochs
    are not reported.

    ## References
    - https://discuss.pytorch.org/t/126760
    """

    needs = "rows that a dataset gives a second time"
    explains = ("rows::evaluation-augmented",)

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.kept: WeakKeyDictionary[Any, dict[int, Kept]] = WeakKeyDictionary()
        """By loader, some rows of its first pass."""
        self.changed = self.again = 0

    def on_pass_begins(self, event: PassBegins) -> None:
        kept = self.kept.get(event.of.loader, {})
        if event.of.number > 2:
            kept.clear()
        for index in [index for index, each in kept.items() if not each.is_unchanged()]:
            del kept[index]  # it is not given now: the script wrote it
        self.changed = self.again = 0

    def on_batch(self, event: Batch) -> None:
        samples, indices = event.samples, event.indices
        if event.of.number > 2 or not isinstance(samples, list) or not isinstance(indices, list):
            return
        if len(samples) != len(indices) or not all(isinstance(index, int) for index in indices):
            return
        if event.of.number == 1:
            self._keep(event.of, dict(zip(indices, samples, strict=True)))
        elif kept := self.kept.get(event.of.loader):
            self._compare(event, kept, dict(zip(indices, samples, strict=True)))

    def _keep(self, of: Pass, given: dict[int, Any]) -> None:
        kept = self.kept.setdefault(of.loader, {})
        for index, sample in given.items():
            row = _row(sample)
            if row is None or len(kept) >= MOST_ROWS or (kept and (1 + len(kept)) * row.numel() > MOST_VALUES):
                return
            kept.setdefault(index, Kept(row, content_digest(row)))

    def _compare(self, event: Batch, kept: dict[int, Kept], given: dict[int, Any]) -> None:
        for index in given.keys() & kept.keys():
            row, before = _row(given[index]), kept.pop(index)
            self.looked = True
            if row is not None and row.data_ptr() == before.row.data_ptr():
                self.again += 1
                self.changed += not before.is_unchanged()
        if self.again >= ENOUGH_ROWS and self.changed == self.again:
            self.found(
                expected="rows that stay as they are in the dataset",
                observed=f"all {self.again} rows that came again have changed where {type(event.of.dataset).__name__} "
                "keeps them",
                where=event.where,
                update=self.monitor.update,
            )


def _row(sample: Any) -> torch.Tensor | None:
    """The first tensor of floating-point numbers that a dataset gave for a row; an array as one that shares it."""
    parts = list(sample.values()) if isinstance(sample, Mapping) else sample
    parts = parts if isinstance(parts, (list, tuple)) else (parts,)
    for part in parts:
        is_array = type(part).__module__ == "numpy" and getattr(part, "ndim", None) and part.flags.writeable
        tensor = torch.from_numpy(part) if is_array else next((each for _, each in tensors_in(part)), None)
        if tensor is not None and tensor.is_floating_point() and tensor.dim():
            return tensor.detach()
    return None
