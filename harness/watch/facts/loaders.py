"""Loaders beside one another: whether the batches that one loss is of are of the same rows."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from weakref import ref

import torch

from harness.watch.bounded import Latest, LatestByKey
from harness.watch.events import Batch, End, Fact, LoaderMade, LossCall, Pass, PassBegins
from harness.watch.facts.datasets import length
from harness.watch.host import on_host
from harness.watch.recogniser import Recogniser
from harness.watch.run.batches import tensors_in


class LossOfTwoLoaders(Fact):
    """A loss was computed of inputs and targets that two loaders over as many rows gave. ``where`` gave the targets."""

    needs = "loss of two loaders' batches"
    apart: int
    """Such losses in a row whose two sides were of different rows."""
    inputs: str = ""
    """The places of the first rows of the inputs in their dataset."""
    targets: str = ""
    """The places of the first rows of the targets in their dataset."""


class LoaderUnread(Fact):
    """A run is over in which a DataLoader was made and never read, though others were. ``where`` it was made.

    One whose rows another gave, as a prepared one does, is not told of.
    """

    needs = "DataLoader that is never read"
    of_run = True
    rows: int | None = None
    kept: bool = True
    """Whether the script still has it."""


class UnreadLoaders(Recogniser):
    makes = (LoaderUnread,)

    def begin(self) -> None:
        self._made = LatestByKey[tuple[int, str], tuple[int | None, ref[Any], ref[Any] | None]]()
        """Dataset and line to the number of rows, the loader, and the dataset, where one can point at it weakly."""
        self._read = Latest[int]()
        """Datasets of which rows were read."""

    def on_loader_made(self, event: LoaderMade) -> None:
        dataset = event.loader.dataset
        if event.where is not None and id(dataset) not in self._read:
            with suppress(TypeError):
                self._made[id(dataset), event.where] = length(dataset), ref(event.loader), None
                self._made[id(dataset), event.where] = length(dataset), ref(event.loader), ref(dataset)

    def on_pass_begins(self, event: PassBegins) -> None:
        dataset = id(event.of.loader.dataset)
        if dataset not in self._read:
            self._read.append(dataset)
        for key in [each for each in self._made if each[0] == dataset]:
            known = self._made[key][2]
            if known is None or known() is event.of.loader.dataset:  # an id is given anew once its object is gone
                del self._made[key]

    def on_end(self, event: End) -> None:
        for (_, where), (rows, loader, _) in self._made.items() if event.at.complete and self._read else ():
            self.tell(LoaderUnread(rows=rows, kept=loader() is not None, where=where))


@dataclass(frozen=True)
class _BatchGiven:
    of: Pass
    indices: tuple[Any, ...]
    tensors: tuple[torch.Tensor, ...]


class LoadersBeside(Recogniser):
    makes = (LossOfTwoLoaders,)

    def begin(self) -> None:
        self._latest = Latest[_BatchGiven](most=4)  # batches are large, and a training step takes fewer
        self._apart = 0

    def on_batch(self, event: Batch) -> None:
        if not event.at.sampled:
            self._latest.clear()
        elif isinstance(event.indices, (list, tuple)):
            tensors = tuple(tensor for _, tensor in tensors_in(event.data))
            self._latest.append(_BatchGiven(event.of, tuple(event.indices), tensors))

    def on_loss(self, event: LossCall) -> None:
        loaders = {id(each.of.loader) for each in self._latest}
        if len(loaders) < 2 or not event.input.requires_grad or not self.monitor.forwards:
            return
        of_targets = self._batch_of([event.target])
        of_inputs = self._batch_of([*self.monitor.forwards[-1].tensors.values()])
        if of_targets is None or of_inputs is None or of_targets.of.loader is of_inputs.of.loader:
            return
        if _rows(of_targets.of) != _rows(of_inputs.of):
            return
        self._apart = self._apart + 1 if of_targets.indices != of_inputs.indices else 0
        inputs, targets, where = _shown(of_inputs), _shown(of_targets), of_targets.of.where
        self.tell(LossOfTwoLoaders(apart=self._apart, inputs=inputs, targets=targets, where=where))

    def _batch_of(self, tensors: list[torch.Tensor]) -> _BatchGiven | None:
        """The latest batch that has one of these tensors."""
        for given in reversed(self._latest):
            if any(_same(tensor, each) for tensor in tensors for each in given.tensors):
                return given
        return None


def _same(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether they have the same numbers, in whatever shape and type, and on whichever device."""
    if one.numel() != other.numel() or one.numel() < 2:
        return False
    one, other = on_host(one), on_host(other)
    return one.device == other.device and bool((one.flatten() == other.flatten()).all())


def _rows(of: Pass) -> int | None:
    try:
        return len(of.dataset)
    except TypeError:
        return None  # a stream


def _shown(given: _BatchGiven) -> str:
    return ", ".join(map(str, given.indices[:3])) + ", …"
