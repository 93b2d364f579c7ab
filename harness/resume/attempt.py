"""One kill, and what came after it beside what the uninterrupted run did from there."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import cached_property

from harness.digests import Digests, differing
from harness.resume.plan import Kill, ends_of_epochs, epochs
from harness.starts.journal import Journal, Saved, Update


@dataclass(frozen=True)
class Parting:
    """The first update after the kill that is not the uninterrupted run's."""

    after: int
    """Updates that were made right since the script was started again."""
    whole: Update
    """The uninterrupted run's."""
    resumed: Update

    @property
    def update(self) -> int:
        """Number of the update in the uninterrupted run."""
        return self.whole.at

    @cached_property
    def rows_differ(self) -> bool:
        return [each.rows for each in self.whole.batches] != [each.rows for each in self.resumed.batches]

    @property
    def contents_differ(self) -> bool:
        """Whether the same rows hold something else."""
        return not self.rows_differ and self.whole.batches != _numbered_as(self.resumed, self.whole)

    @cached_property
    def weights(self) -> list[str]:
        """The tensors that differ."""
        return differing(self.whole.weights, self.resumed.weights)

    @cached_property
    def state(self) -> list[str]:
        """What an optimizer kept that differs, or is not there."""
        return differing(self.whole.state, self.resumed.state, common=False)

    @property
    def same_scale(self) -> bool:
        """Whether a GradScaler does the same; steps that it left out before the checkpoint are not made again."""
        skipped, again = self.whole.skipped, self.resumed.skipped
        return self.whole.scale == self.resumed.scale and (skipped == again or (self.after == 0 and again < skipped))

    @property
    def same_inputs(self) -> bool:
        """Whether weights and scale are the same, so that the same should be computed from the same rows."""
        return not self.weights and self.same_scale

    @property
    def keeps_gradients(self) -> bool:
        """Whether the gradients of the window's first micro-batches were saved, and only the others were computed."""
        before = len(self.whole.batches) - len(self.resumed.batches)
        return (
            self.after == 0
            and before > 0
            and [each.rows for each in self.whole.batches[before:]] == [each.rows for each in self.resumed.batches]
            and self.whole.losses[before:] == self.resumed.losses
            and not (self.weights or self.state)
            and self.whole.gradients == self.resumed.gradients
            and (self.whole.lr, self.whole.options) == (self.resumed.lr, self.resumed.options)
        )

    @property
    def same_evaluations(self) -> bool:
        """Whether models that were evaluated since the update before said the same; what was right after the start has
        nothing to compare it with."""
        return self.after == 0 or self.whole.evaluations == self.resumed.evaluations

    @property
    def others(self) -> list[str]:
        """Models that are not trained, were evaluated, and have other weights."""
        return [] if self.after == 0 else differing(self.whole.others, self.resumed.others)

    @property
    def lost_generators(self) -> list[str]:
        """Generators of random numbers that are not where the uninterrupted run's are."""
        return differing(self.whole.random, self.resumed.random)


@dataclass(frozen=True)
class Attempt:
    """The journals of one process."""

    kill: Kill
    whole: Journal
    """Uninterrupted."""
    again: Journal
    """Uninterrupted, a second time: what differs there is no loss."""
    killed: Journal
    resumed: Journal
    sources: set[str] = field(default_factory=set)
    """Kinds of files that the script went on from after any of its kills."""
    hung: float | None = None
    """Seconds after which the start after the kill was ended, because it did not end by itself."""

    @cached_property
    def complete(self) -> list[Saved]:
        """What can be gone on from: of what was being saved at the kill nothing is complete."""
        torn = {(saved.at, saved.pending) for saved in self.killed.saves if not saved.done}
        exact = any(saved.weights for saved in self.whole.checkpoints())
        return [
            saved if exact or not saved.otherwise else replace(saved, weights=True)
            for saved in self.killed.saves
            if (saved.at, saved.pending) not in torn
        ]

    @cached_property
    def checkpoint(self) -> Saved | None:
        """The latest file with trained weights that can be gone on from."""
        return next((saved for saved in reversed(self.complete) if saved.weights), None)

    @cached_property
    def kept(self) -> frozenset[str]:
        """All that was written together with the checkpoint, as digests."""
        checkpoint = self.checkpoint
        together = [each for each in self.killed.saves if checkpoint is not None and each.at == checkpoint.at]
        return frozenset(value for each in together for value in each.values.values())

    @property
    def save_line(self) -> str | None:
        return None if self.checkpoint is None else self.checkpoint.where

    @property
    def load_line(self) -> str | None:
        """The latest line before the first update that loads something, or the one that saves."""
        lines = [loaded.where for loaded in self.resumed.loads if loaded.at == 0 and loaded.where]
        return lines[-1] if lines else self.save_line

    def line_of(self, digests: Digests) -> tuple[str | None, str]:
        """Where something was lost, and how: it was not saved, or it was and is not loaded."""
        if self.checkpoint is not None and digests and self.kept.isdisjoint(digests.values()):
            return self.save_line, f"{self.checkpoint.path} does not contain it"
        return self.load_line, "it was saved, but not loaded" if digests else "it differs from what was saved"

    @cached_property
    def anew(self) -> bool:
        """Whether the script made its first update of all again."""
        if not self.resumed.updates:
            return False
        first, resumed = self.whole.updates[0], self.resumed.updates[0]
        if not _same(first.weights, resumed.weights) or not _same(first.state, resumed.state):
            return False
        end = self.resumed.end
        return [each.rows for each in first.batches] == [each.rows for each in resumed.batches] and (
            len(self.resumed.updates) >= len(self.whole.updates) or (end is not None and end.endless)
        )

    @cached_property
    def origin(self) -> int:
        """How many updates the script had behind it when it went on; 0 where it began anew."""
        if self.anew:
            return 0
        saved = {each.at for each in self.killed.saves if each.done}
        last = 0 if self.checkpoint is None else self.checkpoint.at
        if not self.resumed.updates:
            return last
        first = self.resumed.updates[0]
        candidates = [each for each in self.whole.updates if each.at - 1 <= self.kill.at]
        weights = {each.at - 1 for each in candidates if _same(each.weights, first.weights)}
        state = {each.at - 1 for each in candidates if each.state and _same(each.state, first.state)}
        found = (weights & state) or weights | state
        found = {each for each in found if each or not last} or {last}
        return max(found & saved or found)

    @cached_property
    def used(self) -> list[Saved]:
        """The files with trained weights that it may have gone on from."""
        return [saved for saved in self.complete if saved.weights and self.origin and saved.at == self.origin]

    @property
    def source(self) -> str | None:
        """The kind of file that it went on from, where no other was read that has the same weights."""
        read = {loaded.path for loaded in self.resumed.loads if loaded.at == 0}
        kinds = {kind_of(saved.path) for saved in self.used if saved.path in read}
        return kinds.pop() if len(kinds) == 1 else None

    @property
    def resumed_from(self) -> int | None:
        """The update after which the script went on; None where it began anew."""
        return self.origin or None

    @cached_property
    def parting(self) -> Parting | None:
        """Where the two part; None where every update is the same as far as both go."""
        pairs = zip(self.whole.updates[self.origin :], self.resumed.updates, strict=False)
        for number, (whole, resumed) in enumerate(pairs):
            parting = Parting(number, whole, resumed)
            if parting.keeps_gradients:
                continue
            same = whole.batches == _numbered_as(resumed, whole) and whole.losses == resumed.losses
            same = same and (whole.lr, whole.options) == (resumed.lr, resumed.options)
            same = same and parting.same_scale
            same = same and not parting.weights and not parting.state and whole.gradients == resumed.gradients
            if not (same and parting.same_evaluations and not parting.others):
                return parting
        return None

    @cached_property
    def rates_part(self) -> Parting | None:
        """The first update with another learning rate, in the pass over the rows in which the two part.

        It depends neither on the rows nor on the weights before it, unless it follows a score: where a model is
        evaluated or a pass ends, or a GradScaler leaves out other steps, nothing can be said of what comes after.
        """
        if (first := self.parting) is None:
            return None
        ends, resumed_ends = ends_of_epochs(self.whole), ends_of_epochs(self.resumed)
        pairs = zip(
            self.whole.updates[first.whole.at - 1 :], self.resumed.updates[first.resumed.at - 1 :], strict=False
        )
        for number, (whole, resumed) in enumerate(pairs, start=first.after):
            parting = Parting(number, whole, resumed)
            evaluated = bool(whole.evaluations or resumed.evaluations)
            if number > first.after and (evaluated or not parting.same_scale):
                return None
            if whole.lr != resumed.lr:
                return parting
            if whole.at in ends or resumed.at in resumed_ends:
                return None
        return None

    @cached_property
    def new_rows(self) -> bool:
        """Whether rows are none of the uninterrupted run's, where they are told by what they hold: that is another."""
        if self.parting is None or not self.parting.rows_differ:
            return False
        rows = {row for batch in self.parting.resumed.batches for row in batch.rows}
        known = {row for update in self.whole.updates for batch in update.batches for row in batch.rows}
        return bool(rows) and rows.isdisjoint(known)

    @property
    def made(self) -> int:
        """Updates in all: those that the script went on from, and those after."""
        return self.origin + len(self.resumed.updates)

    @property
    def excess(self) -> int:
        """Updates too many; negative where there are too few."""
        endless = self.resumed.end is not None and self.resumed.end.endless
        return max(1, self.made - len(self.whole.updates)) if endless else self.made - len(self.whole.updates)

    @cached_property
    def epochs_behind(self) -> int:
        """Whole epochs that lie behind the update from which it went on."""
        return sum(each[-1][0] <= self.origin for each in epochs(self.whole))


def kind_of(path: str) -> str:
    """A path with any numbers."""
    return re.sub(r"\d+", "*", path)


def _same(whole: Digests, resumed: Digests) -> bool:
    """Whether what both have is the same; and both have something, or neither does."""
    return not differing(whole, resumed) and bool(whole) == bool(resumed)


def _numbered_as(update: Update, other: Update) -> tuple[object, ...]:
    """The batches, with the numbers of passes of another start."""
    if len(update.batches) != len(other.batches):
        return update.batches
    return tuple(replace(mine, number=its.number) for mine, its in zip(update.batches, other.batches, strict=True))
