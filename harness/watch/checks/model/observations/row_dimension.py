"""Row dimension: whether the first dimension of what a model is given is that of the rows, and not of time or nodes."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from weakref import WeakKeyDictionary

import torch
from torch import nn
from torch.utils.data import default_collate

from harness.torch_objects import real
from harness.watch.events import Backward, Batch, Forward
from harness.watch.host import on_host
from harness.watch.recogniser import Recogniser
from harness.watch.run.rows import MIN_DIFFERENT_VALUES, exact, largest

MIN_MOVED = 16
"""Rows that must have come again with another row behind them: by reasoning, the steps of a sequence, the nodes of a
graph and the members of a set come again in their order, or not at all."""

MOST_ROWS = 64
"""Rows of one forward that are remembered."""

MOST_REMEMBERED = 4096
"""Rows of one model that are remembered: enough for some to come again."""


@dataclass(eq=False)
class _Order:
    """Which row came behind which, in the forwards of one model that no loader's batch was given to."""

    following: dict[int, int] = field(default_factory=dict)
    moved: int = 0
    """How often a row came again with another one behind it."""
    kept: int = 0
    """How often it came with the same one."""
    unclear: bool = False
    """Whether rows are alike, so that their order says nothing."""


class RowDimension(Recogniser):
    """What each model is given by rows.

    A DataLoader says how many rows a batch has. Where the script makes batches by hand, rows are what comes again in
    another order, because the script shuffles them; or slices of a tensor, of which each has a label in the same slice
    of another.
    """

    def begin(self) -> None:
        self._known: WeakKeyDictionary[nn.Module, tuple[int, bool]] = WeakKeyDictionary()
        """Model to the number of dimensions of its rows' tensor, rows included, and whether it is of floats."""
        self._orders: WeakKeyDictionary[nn.Module, _Order] = WeakKeyDictionary()

    def count(self, event: Forward) -> int | None:
        """The rows of what a model is given, in the first dimension of each tensor; None where that is not known."""
        lengths = {len(tensor) for tensor in event.tensors.values() if tensor.dim()}
        given = largest(event)
        if len(lengths) != 1 or given is None:
            return None
        unknown_to_the_loader = event.batch is not None and event.batch.indices is None
        if unknown_to_the_loader or self._known.get(event.model) == _kind(given):
            return lengths.pop()
        return None

    def on_forward(self, event: Forward) -> None:
        if event.model in self._known or not self.monitor.is_sampled():
            return
        given = largest(event)
        if given is None or len(given) < 2:
            return
        if event.batch is not None and _is_by_rows(given, event.batch):
            self._known[event.model] = _kind(given)
        elif event.gradients and given.dim() >= (3 if given.is_floating_point() else 2):
            order = self._orders.setdefault(event.model, _Order())
            _follow(order, given)
            if not order.unclear and order.moved >= MIN_MOVED and order.moved > 8 * order.kept:
                self._known[event.model] = _kind(given)
                del self._orders[event.model]

    def on_backward(self, event: Backward) -> None:
        if not self.monitor.is_sampled() or len(event.losses) != 1:
            return
        for forward in event.forwards:
            given = largest(forward) if forward.number in event.reached and forward.model not in self._known else None
            if given is not None and given.dim() > 2 and _are_slices(given, event.losses[0].target):
                self._known[forward.model] = _kind(given)


def _are_slices(given: torch.Tensor, labels: torch.Tensor) -> bool:
    """Whether both are slices of tensors of as many rows, and no other dimension may be theirs."""
    whole, of_labels = given._base, labels._base
    if whole is None or of_labels is None or labels.dim() != 1 or len(labels) in given.shape[1:]:
        return False
    sliced = whole.shape[1:] == given.shape[1:] and len(whole) > len(given) == len(labels)
    return sliced and of_labels.dim() == 1 and len(of_labels) == len(whole)


def _kind(given: torch.Tensor) -> tuple[int, bool]:
    return given.dim(), given.is_floating_point()


def _is_by_rows(given: torch.Tensor, batch: Batch) -> bool:
    """Whether the first dimension has as many rows as the sampler drew, and no other may be theirs."""
    drawn = batch.indices
    if not isinstance(drawn, (list, tuple)) or len(drawn) != len(given):
        return False
    stacked = getattr(batch.of.loader, "collate_fn", None) is default_collate
    return stacked or given.dim() == 1 or given.shape[1] != len(given)


def _follow(order: _Order, given: torch.Tensor) -> None:
    if order.unclear:
        return
    rows = exact(given)[:MOST_ROWS]
    if len(set(rows)) < len(rows) or any(len(row.unique()) < MIN_DIFFERENT_VALUES for row in real(on_host(given))[:4]):
        order.unclear = True
        order.following.clear()
        return
    for row, behind in pairwise(rows):
        before = order.following.get(row)
        if before is not None:
            order.moved += before != behind
            order.kept += before == behind
        elif len(order.following) < MOST_REMEMBERED:
            order.following[row] = behind
