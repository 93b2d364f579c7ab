from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch

from harness.watch.check import Check
from harness.watch.events import LossCall

VIEWS = ("ViewBackward0", "UnsafeViewBackward0")


class AxesMixed(Check):
    """Logits are brought into the shape that cross_entropy expects by a view, which mixes places and classes.

    ## Why is this a bug?
    For a label at each place, `cross_entropy` takes logits of shape (rows, classes, places). `view` and `reshape` read
    the numbers on in the order in which they lie there: what is then a class's logit at one place was another class's
    at another. Each label is compared with logits of several places, and the loss still falls a little.

    ## What to do
    Move the axis: logits.transpose(1, 2), or logits.movedim(-1, 1) with more than one axis of places. Or flatten both:
    cross_entropy(logits.flatten(0, -2), labels.flatten()).

    ## When it is right
    A layer that gives all numbers of a row at once has no axes to be mixed: its output may be viewed in any shape, and
    is not reported. Nor is what anything else but a linear layer gave: whether it has the classes last is not known.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.CrossEntropyLoss.html
    - https://docs.pytorch.org/docs/stable/generated/torch.Tensor.view.html
    """

    id = "loss::axes-mixed"
    needs = "cross_entropy with a label for each place"
    in_windows = "first"

    def on_loss(self, event: LossCall) -> None:
        if event.function != "cross_entropy" or event.input.dim() < 3 or not self.monitor.is_sampled():
            return
        self.looked = True
        shapes = _shapes_before(event.input)
        if len(shapes) < 2 or len(shapes[0]) < 3:
            return  # what gave the logits is not known: a linear layer views rows with places as one list of rows
        before, *earlier = shapes
        rows, *places, classes = before
        if event.input.shape != (rows, classes, *places) or before == event.input.shape:
            return
        if min(classes, math.prod(places)) > 1 and all(shape[-1:] == (classes,) for shape in earlier):
            self.found(
                expected=f"logits of shape {tuple(event.input.shape)} whose axes were moved, as by movedim(-1, 1)",
                observed=f"those of shape {tuple(before)} are viewed so: places and classes are mixed",
                where=event.where,
                update=self.monitor.update,
            )


def _shapes_before(tensor: torch.Tensor) -> list[torch.Size]:
    """The shapes that a tensor was viewed from, the latest first."""
    return [torch.Size(node._saved_self_sym_sizes) for node in _views(tensor.grad_fn)]


def _views(node: Any) -> Iterator[Any]:
    while node is not None:
        if node.name() in VIEWS and hasattr(node, "_saved_self_sym_sizes"):
            yield node
        elif not _adds_bias(node):
            return
        node = node.next_functions[0][0]


def _adds_bias(node: Any) -> bool:
    """Whether it is the last part of a linear layer, which leaves the shape as it is."""
    added = node.next_functions[1][0] if node.name() == "AddBackward0" else None
    return torch.is_tensor(bias := getattr(added, "variable", None)) and bias.dim() == 1
