"""Carried states: whether a model goes on from the batch before, so that batches must come in their order."""

from __future__ import annotations

from collections.abc import Iterator
from weakref import WeakKeyDictionary

import torch
from torch import nn
from torch.utils.data import RandomSampler

from harness.watch.events import Backward, Batch, Fact, Forward
from harness.watch.facts.samplers import row_sampler
from harness.watch.facts.twins import Twin, probing, with_another
from harness.watch.host import on_host
from harness.watch.monitor import ALWAYS_SAMPLED
from harness.watch.recogniser import Recogniser
from harness.watch.run.batches import content_digest, tensors_in


class ShuffledRowsGiven(Fact):
    """A model that is trained was given rows that a loader shuffles, one batch after another. ``where`` called it."""

    needs = "training on shuffled rows"
    state: tuple[int, ...] | None = None
    """The shape of a state that it was given, too, that is what it said of the batch before, row by row."""


class CarriedStates(Recogniser):
    """Looks at whether a model is given what it said of the batch before, or keeps other tensors after each batch."""

    makes = (ShuffledRowsGiven,)

    def begin(self) -> None:
        self.seen = False
        self._backward = 0
        """The latest backward pass of batches that are kept after their pass."""
        self._before: WeakKeyDictionary[nn.Module, tuple[tuple[int, int], set[bytes], set[bytes]]] = WeakKeyDictionary()
        """Batch of each model's latest forward, what it said, and what the model kept."""

    def on_backward(self, event: Backward) -> None:
        if event.batch is not None and event.batch.of.over:
            self._backward = event.number

    def on_forward(self, event: Forward) -> None:
        if event.batch is None or not event.gradients or event.at.update > ALWAYS_SAMPLED:
            return
        state = None if self.seen else self._look(event, event.batch)
        if self.wants(ShuffledRowsGiven) and isinstance(row_sampler(event.batch.of.loader), RandomSampler):
            rows = event.batch.of.loader.batch_size if event.batch.indices is None else len(event.batch.indices)
            by_row = state is not None and rows is not None and rows > 1 and self._is_by_row(event, state, rows)
            if by_row or event.at.updates_made > 0:
                self.tell(
                    ShuffledRowsGiven(
                        state=tuple(state.shape) if state is not None and by_row else None, where=event.where
                    )
                )

    def _look(self, event: Forward, of: Batch) -> torch.Tensor | None:
        """What the forward was given and the model had said of another batch, the first time."""
        given = None
        batch, kept = (of.number, self._backward), set(map(content_digest, _kept_by(event.model)))
        before, digests, kept_before = self._before.get(event.model, (batch, set(), kept))
        if before != batch:
            tensors = [each for _, each in tensors_in([event.args, event.kwargs]) if each.is_floating_point()]
            carried = [each for each in tensors if content_digest(each) in digests]
            if carried and before[0] != batch[0]:
                given = carried[0]
            self.seen = bool(carried) or (bool(kept - kept_before) and bool(kept_before - kept))
        digests = {
            content_digest(t)
            for _, t in tensors_in(event.output)
            if t.is_floating_point() and t.requires_grad and _is_varied(t)
        }
        self._before[event.model] = batch, digests, kept
        return given

    def _is_by_row(self, event: Forward, state: torch.Tensor, rows: int) -> bool:
        """Whether a part of the state concerns one row alone, as a copy of the model says that is given another one."""
        dims = [dim for dim, length in enumerate(state.shape) if length == rows]
        if not dims:
            return False
        with probing(
            self.monitor, f"whether the state that {type(event.model).__name__} is given concerns single rows"
        ):
            twin = Twin(event.model)
            before = twin.logits(*with_another(event, state, state))
            others = (twin.logits(*with_another(event, state, _with_another_first(state, dim))) for dim in dims)
            return any(_changes_one(before, after, rows) for after in others)
        return False


def _is_varied(tensor: torch.Tensor) -> bool:
    """Whether it has several values: another tensor of zeros is no state that was carried."""
    return tensor.numel() > 0 and bool(((here := on_host(tensor)) != here.flatten()[0]).any())


def _kept_by(model: nn.Module) -> Iterator[torch.Tensor]:
    """Tensors without a graph that modules have as plain attributes, as a state is that is detached.

    DistributedDataParallel keeps a list of parameters, which are no state.
    """
    for module in model.modules():
        for value in list(vars(module).values()):
            for item in value if isinstance(value, (list, tuple)) else (value,):
                state = torch.is_tensor(item) and not isinstance(item, nn.Parameter)
                if state and item.is_floating_point() and item.grad_fn is None:
                    yield item


def _with_another_first(state: torch.Tensor, dim: int) -> torch.Tensor:
    state = state.detach().clone()
    state.select(dim, 0).add_(1)
    return state


def _changes_one(before: torch.Tensor | None, after: torch.Tensor | None, rows: int) -> bool:
    """Whether the first of so many rows is another, in whichever dimension they lie, and all others are the same."""
    if before is None or after is None or before.shape != after.shape:
        return False
    differ = before != after
    by_row = [differ.transpose(0, dim).flatten(1).any(1) for dim, length in enumerate(differ.shape) if length == rows]
    return any(bool(each[0]) and not bool(each[1:].any()) for each in by_row)
