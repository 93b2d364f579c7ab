"""Passes over DataLoaders: how each began, which have ended, and how they all went."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

from harness.watch.bounded import FirstByKey
from harness.watch.events import Batch, End, Fact, Pass, PassBegins, PassEnds
from harness.watch.recogniser import Recogniser
from harness.watch.run.batches import content_digest, sample_digest
from harness.watch.run.rows import blind_in

FIRST_BATCHES = 3
"""Batches at the beginning of a pass that tell whether it goes in the order of another: by reasoning, two shuffled
orders that begin with the same three batches are the same order."""

MOST_ROWS = 1024
"""Rows of a pass that are remembered, about: enough to tell datasets by them."""

ENOUGH_PASSES = 4
"""Passes of one batch that are no look at the data any more."""


@dataclass(eq=False)
class Beginning:
    """How a pass began."""

    where: str | None
    drawn: list[Any] = field(default_factory=list)
    """What the sampler drew for the first batches."""
    content: list[bytes] = field(default_factory=list)
    """Digests of the first batches."""
    samples: list[bytes] = field(default_factory=list)
    """Digests of the rows in the first batches, as the dataset gave them; of what came in the batches, where workers
    collated them."""
    rows: Counter[bytes] = field(default_factory=Counter)
    """How often each row came."""
    at: dict[int, bytes] = field(default_factory=dict)
    """The row that came for an index."""


@dataclass(eq=False)
class Alike:
    """Passes of one loader that went alike."""

    first: Pass
    latest: Pass
    count: int = 1
    ended: int = 0
    """When the latest ended: the number of passes that had, with it."""


@dataclass(frozen=True)
class BegunAnew:
    """Passes that were left after one batch."""

    count: int
    where: str | None
    same: bool
    """Whether it was the same batch each time."""


class PassOver(Fact):
    """A pass over a DataLoader is over, however it went. ``where`` is where its batches were taken."""

    of: Pass
    beginning: Beginning | None = None
    """How it began; None where it gave no batch."""


class PassesOver(Fact):
    """A run is over: its passes over DataLoaders, those together that went alike."""

    needs = "training over a DataLoader"
    training: Sequence[Alike] = ()
    """Passes that trained, in the order in which the first of each kind ended."""
    evaluating: Sequence[Alike] = ()
    """Passes in which a model was called and nothing was trained."""
    begun_anew: BegunAnew | None = None
    """Passes that were left after one batch, where most of those that trained were."""
    left_early: Pass | None = None
    """The first epoch, where there are three or more and each is left after the same part of its batches."""
    drawn_anew: bool = False
    """Whether the dataset of these draws its rows itself: an index gave another one in another epoch."""
    rows_seen: int = 0
    """Rows of the longest pass that trained, as far as they were remembered."""
    some_twice: bool = False
    """Whether rows of any pass came twice."""


class Passes(Recogniser):
    """The passes of a loop."""

    makes = (PassOver, PassesOver)

    def begin(self) -> None:
        self.beginnings: WeakKeyDictionary[Pass, Beginning] = WeakKeyDictionary()
        self.ended: Pass | None = None
        """The latest pass, if it was exhausted and no other has begun: its batches may be used yet."""
        self.used: Pass | None = None
        """The pass that was ``ended`` until the event at hand, by which all its batches have been used."""
        self._kinds = FirstByKey[tuple[object, ...], Alike]()
        self._recent: list[Pass] = []
        """Ended ones that may still be trained on."""
        self._count = 0
        self._rows_seen = 0
        self._some_twice = False

    def on_pass_begins(self, event: PassBegins) -> None:
        self.used, self.ended = self.ended, None

    def on_batch(self, event: Batch) -> None:
        beginning = self.beginnings.setdefault(event.of, Beginning(event.where))
        indices = event.indices if isinstance(event.indices, (list, tuple)) else None
        first = len(beginning.content) < FIRST_BATCHES
        if first:
            beginning.drawn.append(event.indices)
            beginning.content.append(content_digest(event.data))
            beginning.samples += map(sample_digest, event.samples if isinstance(event.samples, list) else ())
        if len(beginning.rows) + event.of.batches < MOST_ROWS and indices is not None:
            rows = list(blind_in(event.data, len(indices)))
            beginning.rows.update(rows)
            beginning.samples += rows if first and event.samples is None else []
            if len(rows) == len(indices) and all(isinstance(each, int) for each in indices):
                beginning.at.update(zip(indices, rows, strict=True))

    def on_pass_ends(self, event: PassEnds) -> None:
        self.used = None
        if event.of.exhausted:
            self.used, self.ended = self.ended, event.of
        self._recent.append(event.of)
        self._settle(kept=None if self.monitor.batch is None else self.monitor.batch.of)
        beginning = self.beginnings.get(event.of)
        if beginning is not None:
            self._count_rows(event.of, beginning)
        where = event.of.where if beginning is None else beginning.where
        self.tell(PassOver(of=event.of, beginning=beginning, where=where))

    def _count_rows(self, of: Pass, beginning: Beginning) -> None:
        given, different = beginning.rows.total(), len(beginning.rows)
        if of.trains:
            self._rows_seen = max(self._rows_seen, given)
            given, different = len(beginning.at), len(set(beginning.at.values()))
        self._some_twice |= different < given

    def on_end(self, event: End) -> None:
        self.used, self.ended = self.ended, None
        self._settle(kept=None)
        left_early = self._left_early()
        self.tell(
            PassesOver(
                training=self.training(),
                evaluating=self.evaluating(),
                begun_anew=self._begun_anew(),
                left_early=left_early,
                drawn_anew=left_early is not None and self._is_drawn_anew(left_early),
                rows_seen=self._rows_seen,
                some_twice=self._some_twice,
            )
        )

    def _is_drawn_anew(self, epoch: Pass) -> bool:
        begun = [self.beginnings.get(of) for of in (epoch, latest_of(self.training()))]
        one, other = ({} if beginning is None else beginning.at for beginning in begun)
        return any(one[index] != other[index] for index in one.keys() & other.keys())

    def _settle(self, kept: Pass | None) -> None:
        """Sort in the passes of which nothing more comes, up to the one of the batch at hand."""
        while self._recent and self._recent[0] is not kept:
            over = self._recent.pop(0)
            self._count += 1
            whole = over.exhausted or over.shortened
            key = (
                id(over.loader) if whole else (over.where, over.planned),  # a new loader each time keeps no dataset
                over.model,
                over.trains,
                over.forwards > 0,
                over.exhausted,
                over.shortened,
                over.batches,
            )
            alike = self._kinds.get(key)
            if alike is not None:
                alike.latest, alike.count, alike.ended = over, alike.count + 1, self._count
            else:
                self._kinds[key] = Alike(over, over, ended=self._count)

    # At the end

    def training(self) -> list[Alike]:
        """The passes that trained, in the order in which the first of each kind ended."""
        return [each for each in self._kinds.values() if each.first.trains]

    def evaluating(self) -> list[Alike]:
        """Passes in which a model was called and nothing was trained."""
        return [each for each in self._kinds.values() if not each.first.trains and each.first.forwards]

    def _begun_anew(self) -> BegunAnew | None:
        training = self.training()
        single = [each for each in training if _is_of_one_batch(each.first)]
        count = sum(each.count for each in single)
        if count < ENOUGH_PASSES or count <= sum(each.count for each in training) / 2:
            return None
        first, latest = (self.beginnings[each].content for each in (single[0].first, latest_of(single)))
        return BegunAnew(count, single[0].first.where, same=first == latest)

    def _left_early(self) -> Pass | None:
        kinds = self.training()
        if sum(each.count for each in kinds) < 3 or any(each.first.exhausted or each.first.shortened for each in kinds):
            return None
        first = kinds[0].first
        if any(each.first.batches != first.batches for each in kinds) or first.batches < 2:
            return None
        window = first.batches / max(1, first.updates)
        if first.planned is None or first.batches > first.planned - window:
            return None  # all of them, but for a window that would not be full
        return first


def _is_of_one_batch(of: Pass) -> bool:
    return of.batches == 1 and not of.exhausted and (of.planned or 1) > 1


def latest_of(kinds: Iterable[Alike]) -> Pass:
    return max(kinds, key=lambda each: each.ended).latest
