"""Rows given: what a dataset gives for a row, the first time and again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import torch

from harness.watch.bus import Recogniser
from harness.watch.events import Batch, Fact, Pass, PassBegins
from harness.watch.run.batches import content_digest, tensors_in

MOST_ROWS = 64
"""Rows of a loader that are given again and compared: enough that some come early in the next epoch."""

MOST_VALUES = 250_000
"""Numbers in them, about: a megabyte."""


class RowsGivenAgain(Fact):
    """A batch of the second pass over a loader has rows that were kept of the first. ``where`` is the batch."""

    needs = "rows that a dataset gives a second time"
    dataset: str
    """The name of its class."""
    again: int
    """Rows so far that came from the memory that they came from before, or as they were before."""
    changed: int = 0
    """Rows of the same memory that it holds otherwise by now, though nobody wrote them between the passes."""
    otherwise: int = 0
    """Rows that came from other memory, and not as before: augmented, or of stored rows that changed."""


@dataclass
class RowKept:
    """A row as it was given: memory that may be the dataset's own."""

    row: torch.Tensor
    digest: bytes

    def is_unchanged(self) -> bool:
        return content_digest(self.row) == self.digest


class RowsGiven(Recogniser):
    makes = (RowsGivenAgain,)

    def begin(self) -> None:
        self._kept: WeakKeyDictionary[Any, dict[int, RowKept]] = WeakKeyDictionary()
        """Some rows of each loader's first pass."""
        self._changed = self._again = self._otherwise = 0

    def on_pass_begins(self, event: PassBegins) -> None:
        kept = self._kept.get(event.of.loader, {})
        if event.of.number > 2:
            kept.clear()
        for index in [index for index, each in kept.items() if not each.is_unchanged()]:
            del kept[index]  # it is not given now: the script wrote it
        self._changed = self._again = self._otherwise = 0

    def on_batch(self, event: Batch) -> None:
        samples, indices = event.samples, event.indices
        if event.of.number > 2 or not isinstance(samples, list) or not isinstance(indices, list):
            return
        if len(samples) != len(indices) or not all(isinstance(index, int) for index in indices):
            return
        if event.of.number == 1:
            self._keep(event.of, dict(zip(indices, samples, strict=True)))
        elif kept := self._kept.get(event.of.loader):
            self._compare(event, kept, dict(zip(indices, samples, strict=True)))

    def _keep(self, of: Pass, given: dict[int, Any]) -> None:
        kept = self._kept.setdefault(of.loader, {})
        for index, sample in given.items():
            row = _row(sample)
            if row is None or len(kept) >= MOST_ROWS or (kept and (1 + len(kept)) * row.numel() > MOST_VALUES):
                return
            kept.setdefault(index, RowKept(row, content_digest(row)))

    def _compare(self, event: Batch, kept: dict[int, RowKept], given: dict[int, Any]) -> None:
        both = given.keys() & kept.keys()
        for index in both:
            row, before = _row(given[index]), kept.pop(index)
            if row is None:
                continue
            same_memory = row.data_ptr() == before.row.data_ptr()
            same = before.is_unchanged() if same_memory else content_digest(row) == before.digest
            self._again += same_memory or same
            self._changed += same_memory and not same
            self._otherwise += not (same_memory or same)
        if both:
            self.tell(
                RowsGivenAgain(
                    dataset=type(event.of.dataset).__name__,
                    again=self._again,
                    changed=self._changed,
                    otherwise=self._otherwise,
                    where=event.where,
                )
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
