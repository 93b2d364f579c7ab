from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any

import torch

from harness.watch.check import Check
from harness.watch.events import Batch, LossCall, Pass
from harness.watch.facts.batches import tensors_in
from harness.watch.monitor import Monitor

LATEST = 4
"""Batches that are remembered, of as many loaders: more than a training step takes. Neither half nor double of it
changes a verdict of the corpus."""

MIN_LOSSES = 3
"""Losses in a row whose two sides must be of different rows: by reasoning, two orders may agree in one small batch."""


@dataclass(frozen=True)
class _Given:
    of: Pass
    indices: tuple[Any, ...]
    tensors: tuple[torch.Tensor, ...]


class LoadersApart(Check):
    """Inputs and targets come from two DataLoaders, each of which shuffles in its own order.

    ## Why is this a bug?
    Two loaders that a loop goes through side by side draw two permutations. Every input is paired with the target of
    another row, so there is nothing to learn but what targets are like on average. Generators with the same seed do not
    help: `zip` asks the first loader once more than the others, whose sampler then draws once more, and from the second
    epoch on the orders diverge.

    ## What to do
    Make one dataset whose rows have both, torch.utils.data.TensorDataset(inputs, targets) or StackDataset, and one
    loader.

    ## When it is right
    When rows need not belong together: two domains, or two sets of different sizes. A loss is reported only if its
    targets are a batch of one loader and its predictions are for a batch of another loader with the same number of
    rows.

    ## References
    - https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.StackDataset
    """

    status = "new"
    needs = "loss of two loaders' batches"

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.latest: deque[_Given] = deque(maxlen=LATEST)
        self.apart = 0

    def on_batch(self, event: Batch) -> None:
        if not self.monitor.is_sampled():
            self.latest.clear()
        elif isinstance(event.indices, (list, tuple)):
            tensors = tuple(tensor for _, tensor in tensors_in(event.data))
            self.latest.append(_Given(event.of, tuple(event.indices), tensors))

    def on_loss(self, event: LossCall) -> None:
        loaders = {id(each.of.loader) for each in self.latest}
        if len(loaders) < 2 or not event.input.requires_grad or not self.monitor.forwards:
            return
        of_targets = self._batch_of([event.target])
        of_inputs = self._batch_of([*self.monitor.forwards[-1].tensors.values()])
        if of_targets is None or of_inputs is None or of_targets.of.loader is of_inputs.of.loader:
            return
        if _rows(of_targets.of) != _rows(of_inputs.of):
            return
        self.looked = True
        self.apart = self.apart + 1 if of_targets.indices != of_inputs.indices else 0
        if self.apart == MIN_LOSSES:
            self.found(
                expected="inputs and targets of the same rows",
                observed=f"the model is given rows {_shown(of_inputs)}, the loss targets of rows {_shown(of_targets)}",
                where=of_targets.of.where,
                update=self.monitor.update,
            )

    def _batch_of(self, tensors: list[torch.Tensor]) -> _Given | None:
        """The latest batch that has one of these tensors."""
        for given in reversed(self.latest):
            if any(_same(tensor, each) for tensor in tensors for each in given.tensors):
                return given
        return None


def _same(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether they have the same numbers, in whatever shape and type."""
    if one.numel() != other.numel() or one.numel() < 2 or one.device != other.device:
        return False
    return bool((one.detach().flatten() == other.detach().flatten()).all())


def _rows(of: Pass) -> int | None:
    try:
        return len(of.dataset)
    except TypeError:
        return None  # a stream


def _shown(given: _Given) -> str:
    return ", ".join(map(str, given.indices[:3])) + ", …"
