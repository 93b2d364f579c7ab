from __future__ import annotations

import torch

from harness.watch.check import Check
from harness.watch.events import BackwardBegins
from harness.watch.facts.batches import content_digest
from harness.watch.monitor import Monitor

MIN_BATCHES = 5
"""Batches whose rows must all be the same. By reasoning: with labels that differ, even one is hardly an accident."""


class Constant(Check):
    """All rows that the model is trained on are the same, while their labels differ.

    ## Why is this a bug?
    Nothing tells the rows apart, so the model can only learn how often each label occurs. The usual cases: numbers
    between 0 and 1 that are cast to integers, which makes all of them 0; an array that is created and never filled; an
    index that does not advance.

    ## What to do
    Look at dataset[0] and dataset[1] as the model is given them. Cast to float before dividing, and not to integers
    afterwards.

    ## When it is right
    A batch of one row, rows without labels, and rows that all have the same label are not reported, nor are rows that
    do not come from a DataLoader. A throughput benchmark on made-up rows is the one program that does this on purpose.

    ## References
    - https://discuss.pytorch.org/t/67853
    """

    needs = "labelled batches of a DataLoader"
    in_windows = "first"
    explains = ("rows::repeated-or-skipped", "weights::units-alike", "gradients::cut-off")

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.varied = False
        self.row: bytes | None = None
        """The digest of the first row."""
        self.batches = 0

    def on_backward_begins(self, event: BackwardBegins) -> None:
        if self.varied or event.batch is None or not self.monitor.is_sampled():
            return
        given = [
            tensor
            for forward in event.forwards
            for name, tensor in forward.tensors.items()
            if name != "labels" and tensor.dim() > 0 and len(tensor) > 1
        ]
        if not given or not _labels_differ(event, rows=len(given[0])):
            return
        self.looked = True
        first = content_digest([tensor[0] for tensor in given])
        self.varied = self.row not in (None, first) or any(bool((tensor != tensor[:1]).any()) for tensor in given)
        self.row = first
        self.batches += 1
        if not self.varied and self.batches == MIN_BATCHES:
            largest = max(given, key=lambda tensor: tensor.numel())
            low, high = largest.min().item(), largest.max().item()
            self.found(
                expected="rows that differ, as their labels do",
                observed=f"the same row in {MIN_BATCHES} batches of shape {tuple(largest.shape)}, "
                + (f"all of it {low:.6g}" if low == high else f"of numbers from {low:.6g} to {high:.6g}"),
                where=event.forwards[-1].where,
                update=self.monitor.update,
            )


def _labels_differ(event: BackwardBegins, rows: int) -> bool:
    """Whether the labels of two rows differ; those of a language model come flat, one for each token."""
    labels: list[torch.Tensor] = [call.target for call in event.losses]
    labels += [forward.tensors["labels"] for forward in event.forwards if "labels" in forward.tensors]
    by_row = [each.reshape(rows, -1) for each in labels if each.numel() and each.numel() % rows == 0]
    return any(bool((each != each[:1]).any()) for each in by_row)
