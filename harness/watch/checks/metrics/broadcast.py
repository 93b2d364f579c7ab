from __future__ import annotations

import torch

from harness.watch.check import Check
from harness.watch.events import Forward, Pairing, Scored
from harness.watch.monitor import Monitor

MIN_ROWS = 8
"""Rows from which on predictions that are the model's are no accident: by reasoning, 2 to the power of 8 is enough."""

MOST_LOOKS = 32
"""Comparisons of the right shapes that are looked at: one that is none of predictions stays one."""


class Broadcast(Check):
    """Predictions and labels have different shapes, so that a metric compares each prediction with every label.

    ## Why is this a bug?
    Predictions of shape (50, 1) and labels of shape (50,) are broadcast to (50, 50). The mean over them is about what
    guessing with the classes' frequencies would give, however good the model is; nothing warns.

    ## What to do
    Give both the same shape before they are compared: predictions.squeeze(-1), or argmax without keepdim.

    ## When it is right
    All-pairs comparisons that have nothing to do with a model's latest predictions, such as labels with labels, are not
    reported.

    ## References
    - https://docs.pytorch.org/docs/stable/notes/broadcasting.html
    """

    needs = "comparison of what a model said without a graph"

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.looks = 0

    def on_scored(self, event: Scored) -> None:
        said = event.forward.logits
        self.looked |= said is not None and len(said) >= MIN_ROWS

    def on_pairing(self, event: Pairing) -> None:
        if event.column is None or len(event.column[1]) < MIN_ROWS or self.looks == MOST_LOOKS:
            return
        self.looks += 1
        column, flat = event.column
        if bool((column.squeeze(1) == flat).all()):
            return  # labels and themselves, a model that makes no mistake, or differences of all its answers
        if event.sign == "-":
            self._subtracted(event, column, flat)
            return
        for ours, labels in ((column, flat), (flat, column)):
            if any(_are_predictions(ours.reshape(-1), forward) for forward in event.forwards):
                self.found(
                    expected=f"predictions of the labels' shape, {tuple(labels.shape)}",
                    observed=f"predictions of shape {tuple(ours.shape)}, which {event.sign} broadcasts: each is "
                    "compared with every label",
                    where=event.where,
                )

    def _subtracted(self, event: Pairing, column: torch.Tensor, flat: torch.Tensor) -> None:
        """Of a difference only the model's own output tells that it is an error: anything is subtracted."""
        said = [each.logits for each in event.forwards[-1:] if not each.gradients and each.logits is not None]
        if any(column.data_ptr() == each.data_ptr() and column.numel() == each.numel() for each in said):
            self.found(
                expected=f"predictions of the labels' shape, {tuple(flat.shape)}",
                observed=f"predictions of shape {tuple(column.shape)}, from which - broadcasts: each label is "
                "subtracted from every prediction",
                where=event.where,
            )


def _are_predictions(values: torch.Tensor, forward: Forward) -> bool:
    """Whether they are the classes that a model has just given to its rows: the likeliest, or those beyond a number."""
    logits = None if forward.logits is None else forward.logits.detach()
    if logits is None or logits.dim() > 2 or len(logits) != len(values) or bool((values == values[0]).all()):
        return False
    if logits.dim() == 2 and logits.shape[1] > 1:
        return bool((logits.argmax(1) == values).all())
    ones, zeros, logits = values == values.max(), values == values.min(), logits.reshape(-1)
    return bool((ones | zeros).all()) and bool(logits[ones].min() >= logits[zeros].max())
