"""Carried states: whether a model goes on from the batch before, so that batches must come in their order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import torch
from torch import nn

from harness.watch.bus import Recogniser
from harness.watch.events import Backward, Forward
from harness.watch.facts.batches import content_digest, tensors_in
from harness.watch.monitor import ALWAYS_SAMPLED

if TYPE_CHECKING:
    from harness.watch.monitor import Monitor


class CarriedStates(Recogniser):
    """Looks at whether a model is given what it said of the batch before, or keeps other tensors after each batch."""

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.seen = False
        self.given: torch.Tensor | None = None
        """What the forward at hand was given and the model had said of another batch, the first time."""
        self._backward = 0
        """The latest backward pass of batches that are kept after their pass."""
        self._before: WeakKeyDictionary[nn.Module, tuple[tuple[int, int], set[bytes], set[bytes]]] = WeakKeyDictionary()
        """Of each model's latest forward: the batch that it was of, what it said, and what the model kept."""

    def on_backward(self, event: Backward) -> None:
        if event.batch is not None and event.batch.of.over:
            self._backward = event.number

    def on_forward(self, event: Forward) -> None:
        self.given = None
        if self.seen or event.batch is None or not event.gradients or self.monitor.update > ALWAYS_SAMPLED:
            return
        batch, kept = (event.batch.number, self._backward), set(map(content_digest, _kept_by(event.model)))
        before, said, kept_before = self._before.get(event.model, (batch, set(), kept))
        if before != batch:
            tensors = [each for _, each in tensors_in([event.args, event.kwargs]) if each.is_floating_point()]
            carried = [each for each in tensors if content_digest(each) in said]
            if carried and before[0] != batch[0]:
                self.given = carried[0]
            self.seen = bool(carried) or (bool(kept - kept_before) and bool(kept_before - kept))
        said = {
            content_digest(t)
            for _, t in tensors_in(event.output)
            if t.is_floating_point() and t.requires_grad and _is_varied(t)
        }
        self._before[event.model] = batch, said, kept


def _is_varied(tensor: torch.Tensor) -> bool:
    """Whether it has several values: another tensor of zeros is no state that was carried."""
    return tensor.numel() > 0 and bool((tensor != tensor.flatten()[0]).any())


def _kept_by(model: nn.Module) -> Iterator[torch.Tensor]:
    """Tensors without a graph that modules have as plain attributes, as a state is that is detached."""
    for module in model.modules():
        for value in list(vars(module).values()):
            for each in value if isinstance(value, (list, tuple)) else (value,):
                if torch.is_tensor(each) and each.is_floating_point() and each.grad_fn is None:
                    yield each
