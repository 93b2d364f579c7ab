from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import torch

from harness.watch.check import HELD, NOTHING_TO_JUDGE, Check, Found, NothingToJudge, Verdict
from harness.watch.events import Batch, Pass, PassBegins
from harness.watch.run.batches import content_digest, tensors_in

ENOUGH_AGAIN = 4
"""Smallest number of rows that must have come again, and all or none have changed. A script that writes rows itself
while it trains does not write all of them in the order in which they come."""

MOST_ROWS = 64
"""Rows of a loader that are given again and compared: enough that some come early in the next epoch."""

MOST_VALUES = 250_000
"""Numbers in them, about: a megabyte."""


class ChangedInPlace(Check):
    """The dataset modifies its stored rows each time it returns them.

    ## Why is this a bug?
    `row = self.data[index]` is not a copy of an array or a tensor but a view of it: `row /= 255` or `row.sub_(mean)`
    changes the data itself. The first epoch is correct. In the second each row is scaled once more, and so on, until
    all are zero or infinite; an evaluation on such a dataset gets different inputs each time.

    ## What to do
    Make a new row in __getitem__, row = self.data[index] / 255, or call copy() or clone() first.

    ## When it is right
    Rows that a dataset makes anew, that are changed at random on the way, or that the script writes between the epochs
    are not reported.

    ## References
    - https://discuss.pytorch.org/t/126760
    """

    explains = ("rows::evaluation-augmented",)

    needs = "rows that a dataset gives a second time"

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
            dataset = type(event.of.dataset).__name__
            verdict = self.judge(dataset, again=self._again, changed=self._changed, otherwise=self._otherwise)
            self.says(verdict, event.where, event.at.update)

    @staticmethod
    def judge(dataset: str, *, again: int, changed: int = 0, otherwise: int = 0) -> Verdict:
        """Rows of a class of datasets so far that came from the memory that they came from before, or as they were
        before; those of them that it holds otherwise by now, though nobody wrote them between the passes; and others,
        which came from other memory and not as before: augmented, or of stored rows that changed."""
        if otherwise:
            return NothingToJudge("rows come otherwise the second time, as augmented ones do")
        if again < ENOUGH_AGAIN or 0 < changed < again:
            return NOTHING_TO_JUDGE
        if not changed:
            return HELD
        return Found(
            expected="stored rows that don't change",
            observed=f"all {again} rows that came a second time had changed in the data of {dataset}",
        )


@dataclass
class RowKept:
    """A row as it was given: memory that may be the dataset's own."""

    row: torch.Tensor
    digest: bytes

    def is_unchanged(self) -> bool:
        return content_digest(self.row) == self.digest


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
