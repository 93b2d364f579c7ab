from __future__ import annotations

import torch

from harness.torch_objects import shapes_before
from harness.watch.check import Check
from harness.watch.events import LossCall


class FlattenedApart(Check):
    """Logits and labels are flattened in different orders: one has the rows first, the other the places.

    ## Why is this a bug?
    `reshape(-1)` reads the numbers in the order in which they lie in memory. Logits of shape (places, rows, classes),
    which a recurrent network returns without `batch_first`, and labels of shape (rows, places) become lists of the same
    length in which every label is paired with the logits of another place. The loss falls until the network has learnt
    how frequent each label is.

    ## What to do
    Bring both into one order before they are flattened: logits.transpose(0, 1).reshape(-1, classes).

    ## When it is right
    Never. If there are as many rows as places, the shapes do not show the order, and nothing is reported.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.LSTM.html
    """

    status = "new"
    needs = "loss of flattened logits and labels"
    in_windows = "first"

    def on_loss(self, event: LossCall) -> None:
        if event.function != "cross_entropy" or event.input.dim() != 2 or event.target.dim() != 1:
            return
        labels = _flattened(event.target)
        if labels is None or not self.monitor.is_sampled():
            return
        shapes = shapes_before(event.input)
        if not shapes or len(shapes[0]) != 3:
            return
        self.looked = True
        first, second, _ = shapes[0]
        if labels == (second, first) and first != second and min(labels) > 1:
            self.found(
                expected=f"logits and labels in one order, such as {tuple(labels)} places with logits each",
                observed=f"logits {tuple(shapes[0])} and labels {tuple(labels)}, flattened as they are",
                where=event.where,
                update=self.monitor.update,
            )


def _flattened(labels: torch.Tensor) -> torch.Size | None:
    """The shape that labels had before they were flattened, where all of them were and none moved."""
    before = labels._base
    if before is None or before.dim() != 2 or before.numel() != labels.numel() or not before.is_contiguous():
        return None
    return before.shape
