from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
import xxhash

from harness.watch.bounded import FirstByKey
from harness.watch.check import NOTHING_TO_JUDGE, Check, Found, Held, NothingToJudge, Verdict
from harness.watch.events import Batch, End, Forward, LossCall
from harness.watch.host import on_host
from harness.watch.run.batches import tensors_in

MIN_AGAIN = 16
"""Rows that must have come again with the same input. By reasoning: what a dataset does to a row, it does to all in the
end."""

MIN_CHANGED = 0.25
"""Smallest share of them whose target must have changed: a flip changes half of them."""

MOST_ROWS = 4096
"""Rows whose first input and target are remembered."""


class TargetChangesAlone(Check):
    """The target of a row changes from epoch to epoch, while its input stays the same.

    ## Why is this a bug?
    An augmentation that is drawn anew each time must change the input and what depends on it together. If the image
    stays as it is and its boxes are mirrored, half of the targets are wrong, and the model learns the mean of both. It
    comes of a function whose result is not assigned, such as `np.fliplr(image)`, or of two random draws.

    ## What to do
    Assign what the function returns: `image = np.fliplr(image)`. Draw once, and change input and target by that draw.

    ## When it is right
    Targets that are drawn anew each time, such as noise, are not reported. Ignore this warning if some of them are
    changed at random on purpose. Only batches are looked at whose indices are known, and whose tensors a model and a
    loss are given as they come.

    ## References
    - https://github.com/Eaphan/NCLR/issues/10
    """

    severity = "warning"
    new_since = "0.4.0"
    needs = "rows of a dataset whose input and target come again"

    def begin(self) -> None:
        self._inputs, self._targets = set[str](), set[str]()
        """Names of what a model is given of a batch, and of what a loss is."""
        self._first = FirstByKey[int, tuple[int, int]](MOST_ROWS)
        """By index, its first input and target."""
        self._again = self._changed = 0
        """How often a row came again with the same input, and how often with another target."""
        self._waiting: Batch | None = None
        self._where: str | None = None

    def on_batch(self, event: Batch) -> None:
        self._waiting = event if event.at.sampled and isinstance(event.indices, (list, tuple)) else None

    def on_forward(self, event: Forward) -> None:
        if self._waiting is not None and event.gradients:
            self._inputs |= set(_names(self._waiting, event.tensors.values()))

    def on_loss_call(self, event: LossCall) -> None:
        batch = self._waiting
        if batch is None or event.batch is not batch:
            return
        self._waiting = None
        self._targets |= set(_names(batch, [event.target]))
        named = dict(tensors_in(batch.data))
        targets = self._targets - self._inputs
        if not self._inputs <= named.keys() or not targets <= named.keys() or not self._inputs or not targets:
            return
        if any(each.dim() == 0 or len(each) != len(batch.indices) for each in named.values()):
            return
        # What a model is given otherwise than it comes, such as scaled or joined with other numbers, is its input, too.
        columns = [[named[name] for name in sorted(names)] for names in (named.keys() - targets, targets)]
        self._where = self._where or batch.of.where
        inputs, truths = (list(zip(*map(_rows, tensors), strict=True)) for tensors in columns)
        seen = set(self._first)
        for index, *now in zip(batch.indices, map(hash, inputs), map(hash, truths), strict=True):
            if not isinstance(index, int):
                return
            given, target = self._first.setdefault(index, (now[0], now[1]))
            if index in seen and given == now[0]:
                self._again += 1
                self._changed += target != now[1]

    def on_end(self, event: End) -> None:
        if self._where is not None:
            self.says(self.judge(self._again, self._changed), self._where)

    @staticmethod
    def judge(again: int, changed: int) -> Verdict:
        """Rows that came again with the same input, and those of them with another target."""
        if again < MIN_AGAIN:
            return NOTHING_TO_JUDGE
        if changed > 0.9 * again:  # what is mirrored or turned is sometimes as it was
            return NothingToJudge("the targets are drawn anew each time")
        if changed < MIN_CHANGED * again:
            return Held(f"{again} rows came again with the same input, {changed} of them with another target")
        return Found(
            expected="a target that changes only where its input does",
            observed=f"{changed} of {again} rows that came again with the same input had another target",
        )


def _names(batch: Batch, tensors: Any) -> Iterator[str]:
    """The parts of a batch that these tensors are."""
    given = list(tensors)
    for name, part in tensors_in(batch.data):
        if any(_is_same(part, each) for each in given):
            yield name


def _is_same(part: torch.Tensor, given: torch.Tensor) -> bool:
    """Whether a part of a batch is what was given, perhaps on another device, of another type or in another shape."""
    if not part.dim() or not given.dim() or part.numel() != given.numel() or len(part) != len(given):
        return False
    if part.numel() and part.data_ptr() == given.data_ptr():
        return True
    other = on_host(given) if part.device.type == "cpu" else given.detach()
    return part.device == other.device and torch.equal(part.reshape(-1).to(other.dtype), other.reshape(-1))


def _rows(tensor: torch.Tensor) -> list[int]:
    """A digest of all that each row holds: the first numbers of an image are often those of its margin."""
    rows = tensor.detach().cpu().contiguous()
    return [xxhash.xxh3_64_intdigest(row.reshape(-1).view(torch.uint8).numpy().tobytes()) for row in rows]
