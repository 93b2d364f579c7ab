from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary, ref

import torch
from torch import nn
from torch.optim import Optimizer

from harness.torch_objects import held_by
from harness.watch.check import Check
from harness.watch.events import Batch, Load, Step, StepBegins
from harness.watch.monitor import Monitor

KEPT = 64
"""Optimizers made before that are remembered: a loop that makes them again shows in three. Neither half nor double of
it changes a verdict of the corpus."""

NO_STAGE = 10
"""Updates by hand-made batches that are no stage of a training yet, after which another begins. Half or double of it
changes verdicts (docs/detection.md)."""


@dataclass(eq=False)
class Made:
    """An optimizer that made steps, which may be gone."""

    stack: tuple[tuple[str, int], ...]
    """The user's lines that led to its making."""
    held: list[ref[torch.Tensor]]
    defaults: dict[str, Any]
    """Its class, and the defaults that are plain values."""
    dataset: Callable[[], Any]
    """A weak reference to what its first batch came from; gives None where that is not known."""
    updates: int = 0
    of_loaders: int = 0
    """Updates by a batch that a DataLoader had given for them."""
    passes: int = 0
    """Over DataLoaders, that these batches came from."""
    latest: tuple[int, int] = (-1, -1)
    """The latest of these batches: the updates that were made when its pass began, and its number."""

    def count(self, batch: Batch | None) -> None:
        """An update more."""
        self.updates += 1
        if batch is None or batch.number == self.latest[1]:
            return  # made by hand, if of one that was taken out before
        self.of_loaders += 1
        self.passes += batch.of.updates_before != self.latest[0]
        self.latest = batch.of.updates_before, batch.number

    @property
    def was_short(self) -> bool:
        """Whether that is too little for a stage: one pass, or a few hand-made batches."""
        return self.passes == 1 if 2 * self.of_loaders > self.updates else self.updates <= NO_STAGE

    def held_the_same(self, tensors: list[torch.Tensor]) -> bool:
        return len(self.held) == len(tensors) and all(mine() is p for mine, p in zip(self.held, tensors, strict=True))


class MadeAgain(Check):
    """The optimizer is made again in the middle of the training: its moments are lost.

    ## Why is this a bug?
    Adam's moments and SGD's momentum are averages over many updates. An optimizer that is made inside the loop starts
    them at 0 each time: with AdamW every update is then as large as the learning rate allows, whatever the gradients
    are. A scheduler keeps driving the old optimizer.

    ## What to do
    Make the optimizer once, before the loop.

    ## When it is right
    Another optimizer that is made on another line, over other tensors, for another dataset (the next task of several),
    or once on the same line with another learning rate (a second stage of the training) is not reported. Neither is one
    that follows after more than one pass over the rows (a cycle with a schedule of its own, another round of pruning),
    a whole training that is called twice, or one that begins with a state that was loaded into the model, as each
    client's does in federated learning. Plain SGD without momentum has nothing to lose.
    """

    needs = "second update"
    in_windows = "all"
    formerly = ("effect::optimizer-kept",)
    explains = (
        "schedule::drives-another-optimizer",
        "schedule::lr-zero",
        "parameters::unchanged",
        "weights::already-trained",
    )

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.made: deque[Made] = deque(maxlen=KEPT)
        self.going: WeakKeyDictionary[Optimizer, Made] = WeakKeyDictionary()

    def on_step_begins(self, event: StepBegins) -> None:
        self.looked |= self.monitor.updates_made > 0

    def on_step(self, event: Step) -> None:
        if event.number == 1 and any(event.optimizer.state.values()):
            self._compare(event)
        made = self.going.get(event.optimizer)
        if made is not None:
            made.count(event.batch)

    def _compare(self, event: Step) -> None:
        """With the optimizers that were made at the same line before."""
        optimizer, seen = event.optimizer, self.monitor.optimizers[event.optimizer]
        if seen.stack is None:
            return
        held = held_by(optimizer)
        defaults = {"class": type(optimizer)} | {k: v for k, v in optimizer.defaults.items() if _is_plain(v)}
        dataset = _weakly(None if event.batch is None else event.batch.of.dataset)
        alike = [
            earlier
            for earlier in self.made
            if earlier.stack == seen.stack and earlier.held_the_same(held) and earlier.dataset() is dataset()
        ]
        short = bool(alike) and alike[-1].was_short
        # Another learning rate may be another stage of the training; a third one is a loop's.
        if short and (len(alike) > 1 or any(earlier.defaults == defaults for earlier in alike)):
            self.found(
                expected="one optimizer for the whole training",
                observed=f"another {type(optimizer).__name__} is made over the same parameters, at the same line: "
                "the moments are lost",
                where=seen.made,
                update=event.update,
            )
        self.going[optimizer] = Made(seen.stack, [ref(p) for p in held], defaults, dataset)
        self.made.append(self.going[optimizer])

    def on_load(self, event: Load) -> None:
        if isinstance(event.into, nn.Module):
            self.made.clear()


def _weakly(dataset: Any) -> Callable[[], Any]:
    try:
        return ref(dataset)
    except TypeError:  # None, or a plain list
        return lambda: None


def _is_plain(value: Any) -> bool:
    return isinstance(value, (bool, int, float, str, tuple, type(None)))
