"""Orders: whether rows come in another one in each epoch."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

import torch
from torch.optim import Optimizer

from harness.watch.bus import Recogniser
from harness.watch.checks.rows.observations.carried_states import CarriedStates
from harness.watch.checks.rows.observations.passes import Beginning, Passes, PassOver
from harness.watch.events import Backward, Batch, Drawn, End, Fact, OptimizerMade, Pass, Step
from harness.watch.facts.datasets import length
from harness.watch.facts.gradient_ledger import rows_of
from harness.watch.facts.samplers import has_torchs_own_sampler, is_shuffled_stream

MIN_REPEATED_BATCHES = 12
"""Batches that must have come again for their order to be known: if there are four of them, and another order each
time, these come in one order by chance in one of a thousand runs."""

TOO_FEW_BATCHES = 3
"""Batches that are too few for their order to matter, or to be told from another. By reasoning."""

MOST = 4096
"""Batches that are told apart. More than a list has that is gone through again and again."""

MIN_SHARE_OF_SAME_ROWS = 0.25
"""Smallest share of rows that must come as they did in the epoch before. Mirroring at random leaves half of them, and a
dataset that draws a row itself hardly any."""

MIN_ROWS = 16
"""Rows that are worth drawing an order of."""

MOST_ROWS = 1_000_000
"""Rows up to which a permutation is kept."""


class EpochCompared(Fact):
    """An epoch is over that came after another one. ``where`` is where its batches were taken."""

    needs = "second epoch of a DataLoader"
    loader: Any
    same_order: bool
    """Whether its rows came in the order of the epoch before, in a loop that carries no state over them."""
    in_vain: bool = False
    """Whether they did though a sampler of the script's own drew another permutation of them."""


class BatchesAgain(Fact):
    """A run is over that trained on the batches of one pass again and again in one order. ``where``: the backward."""

    batches: int
    update: int = 1
    """The first that was made of batches that came again."""


class PermutationDrawn(Fact):
    """The script drew a permutation at a line at which it has drawn one before, and trained in between."""

    needs = "permutations that the script draws while it trains"
    rows: int
    times: int = 1
    """How often the same one came in a row."""


@dataclass
class BatchesKept:
    """The batches of a pass that has ended, by the backward passes that came after."""

    of: Pass
    where: str | None
    update: int
    places: dict[Hashable, int] = field(default_factory=dict)
    """Places of what the model was given, in the order in which it first came."""
    latest: int = 0
    """The place of the latest that came again."""
    again: int = 0
    rounds: int = 0

    def add(self, given: Hashable) -> None:
        place = self.places.get(given)
        if place is None:
            if len(self.places) < MOST:
                self.places[given] = len(self.places)
        elif place != self.latest:  # else another loss of the same batch
            self.again += 1
            self.rounds += place < self.latest
            self.latest = place

    @property
    def in_order(self) -> bool:
        """Whether they came several times, each time in the same order."""
        batches = self.of.batches
        return (
            batches > TOO_FEW_BATCHES
            and self.again > max(batches, MIN_REPEATED_BATCHES)
            and self.rounds * batches <= self.again
        )


@dataclass
class Stepped:
    """The optimizers that stepped in a pass."""

    first: WeakSet[Optimizer] = field(default_factory=WeakSet)
    """Optimizers that made their first step in it."""
    again: bool = False
    """Whether any other stepped."""


class RowOrders(Recogniser):
    makes = (EpochCompared, BatchesAgain)

    def begin(self) -> None:
        self._passes, self._carried = self.fact(Passes), self.fact(CarriedStates)
        self._before: tuple[Pass, Beginning] | None = None
        """The epoch before."""
        self._optimizers: WeakKeyDictionary[Pass, Stepped] = WeakKeyDictionary()
        self._kept: BatchesKept | None = None
        self._latest: torch.Tensor | None = None
        """The permutation that was drawn since the latest batch."""
        self._drawn: WeakKeyDictionary[Pass, torch.Tensor] = WeakKeyDictionary()
        """Pass to the permutation that was drawn before its first batch."""

    def on_drawn(self, event: Drawn) -> None:
        self._latest = event.permutation if MIN_ROWS <= len(event.permutation) <= MOST_ROWS else None

    def on_batch(self, event: Batch) -> None:
        drawn, self._latest = self._latest, None
        if drawn is not None and event.of.batches == 1 and not has_torchs_own_sampler(event.of.loader):
            self._drawn[event.of] = drawn.clone()

    def on_step(self, event: Step) -> None:
        if event.batch is not None:
            stepped = self._optimizers.setdefault(event.batch.of, Stepped())
            if event.number == 1:
                stepped.first.add(event.optimizer)
            stepped.again |= event.optimizer not in stepped.first

    def on_pass_over(self, fact: PassOver) -> None:
        of, beginning = fact.of, fact.beginning
        if not of.trains or beginning is None:
            return
        own, before = has_torchs_own_sampler(of.loader), self._before
        stepped = self._optimizers.pop(of, None)
        if stepped is not None and not stepped.again:
            self._before = None  # another training
        same = self._before is not None and not self._carried.seen and _in_the_order_of(self._before, of, beginning)
        in_vain = self._before is not None and self._drew_in_vain(self._before, of, beginning)
        if same or in_vain or (before is not None and own):
            where = beginning.where
            self.tell(EpochCompared(loader=of.loader, same_order=same or in_vain, in_vain=in_vain, where=where))
        self._before = of, beginning

    def _drew_in_vain(self, before: tuple[Pass, Beginning], now: Pass, beginning: Beginning) -> bool:
        """Whether two epochs had the same rows in the same order, though other permutations of all were drawn."""
        earlier, its_beginning = before
        one, other = self._drawn.get(earlier), self._drawn.get(now)
        if one is None or other is None or len(one) != len(other) or torch.equal(one, other):
            return False
        several = len(beginning.drawn) > 1 and None not in beginning.drawn
        return several and len(one) == length(now.dataset) and its_beginning.drawn == beginning.drawn

    def on_backward(self, event: Backward) -> None:
        """A loop that goes on with the batches of a pass that has ended keeps them."""
        ended = self._passes.ended
        if ended is None or event.inside_step or event.batch is None or event.batch.of is not ended:
            return
        if self._kept is None or self._kept.of is not ended:
            self._kept = BatchesKept(ended, event.where, event.at.update)
        self._kept.add(rows_of(event))

    def on_end(self, event: End) -> None:
        """Where they are collected anew from time to time, their order changes then."""
        kept, passes = self._kept, sum(each.count for each in self._passes.training())
        if kept is not None and kept.in_order and passes == 1 and not self._carried.seen:
            self.tell(BatchesAgain(batches=kept.of.batches, update=kept.update, where=kept.where))


class Permutations(Recogniser):
    makes = (PermutationDrawn,)

    def begin(self) -> None:
        self._latest: dict[str, tuple[torch.Tensor, int, int]] = {}
        """Line to its permutation, how often that came in a row, and the updates made when it came last."""

    def on_optimizer_made(self, event: OptimizerMade) -> None:
        self._latest.clear()

    def on_drawn(self, event: Drawn) -> None:
        made, drawn = event.at.updates_made, event.permutation
        if event.where is None or not MIN_ROWS <= len(drawn) <= MOST_ROWS or not made:
            return
        before, times, updates = self._latest.get(event.where, (drawn[:0], 0, -1))
        if updates == made:
            return  # nothing was trained in between
        again = times + 1 if torch.equal(before, drawn) else 1
        self._latest[event.where] = drawn.clone(), again, made
        if times:
            self.tell(PermutationDrawn(rows=len(drawn), times=again, where=event.where))


def _in_the_order_of(before: tuple[Pass, Beginning], now: Pass, beginning: Beginning) -> bool:
    stream = is_shuffled_stream(now.dataset)
    one_batch = now.batches < 2 or now.planned == 1 or len(beginning.content) < 2
    if one_batch or not (stream or has_torchs_own_sampler(now.loader)):
        return False
    earlier, its_beginning = before
    if earlier.dataset is now.dataset and not stream:
        return its_beginning.drawn == beginning.drawn and _are_the_same_rows(its_beginning, beginning)
    return earlier.planned == now.planned and its_beginning.content == beginning.content


def _are_the_same_rows(one: Beginning, other: Beginning) -> bool:
    """Whether a dataset gives for an index what it gave before, as one that draws at random itself does not."""
    same = sum(a == b for a, b in zip(one.samples, other.samples, strict=False))
    return one.content == other.content or same > MIN_SHARE_OF_SAME_ROWS * len(one.samples)
