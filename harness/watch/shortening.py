"""Shortening: which batches of a long pass over a DataLoader are left out, so that a verdict comes in seconds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from harness.watch.events import Pass

MOST_ROWS_DRAWN = 1_000_000
"""Largest number of rows that are drawn to know the last ones: what takes under a second."""

DRAWN_FROM = ("torch", "accelerate", "transformers", "builtins")
"""Packages whose samplers do nothing but draw, so that nobody misses what was drawn for nothing."""


@dataclass(frozen=True)
class Shortening:
    """A long pass gives its first batches and its last, while ``len()`` of its loader stays what it is.

    The numbers are guesses that the corpus (tests/checks) confirms: as few batches as leave every check enough to see.
    """

    unshortened_up_to: int = 40
    """Batches of a pass that is given whole."""
    batches: int = 16
    """Batches that are given of a longer pass, the last included."""
    first_passes: int = 3
    """Passes of a loader after which ``later_batches`` are enough."""
    later_batches: int = 4
    updates: int = 2
    """A pass that trains goes on until it has seen this number of updates, which accumulation makes rare..."""
    at_most: int = 256
    """... unless that takes more batches than these."""

    def is_enough(self, seen: Pass, given: int) -> bool:
        """Whether the batch that comes after ``given`` ones may be the last."""
        first = seen.number <= self.first_passes
        limit = self.unshortened_up_to if seen.planned is None else self.batches
        if (seen.planned is not None and seen.planned <= self.unshortened_up_to) or _may_be_trained_with(seen):
            return False
        if given < (limit if first else self.later_batches) - 1:
            return False
        if not seen.trains or given >= self.at_most:
            return True
        if self._has_rest(seen):
            return False
        return seen.updates >= (self.updates if first else 1) and seen.pending <= 1

    def _has_rest(self, seen: Pass) -> bool:
        """Whether the first pass has micro-batches at its end that fill no window: what becomes of them shows only in a
        whole pass, and in the first update of the next."""
        if seen.number > 1 or not seen.planned or seen.planned > 2 * self.unshortened_up_to or not seen.updates:
            return False
        window = (seen.batches - seen.pending) / seen.updates
        return window > 1 and seen.planned % window != 0

    def can_skip_to_the_last(self, seen: Pass) -> bool:
        """Whether the last batch is given too: there is one to be told, and it leaves no window unfilled."""
        if seen.planned is None or (seen.trains and seen.updates < seen.batches - 1):
            return False
        rows = seen.planned * (getattr(seen.loader, "batch_size", None) or 1)
        return rows <= MOST_ROWS_DRAWN and all(_package(each) in DRAWN_FROM for each in _samplers(seen.loader))


class TrainingShortened(Shortening):
    """Passes that train are made shorter, and evaluations are whole."""

    def is_enough(self, seen: Pass, given: int) -> bool:
        return seen.trains and super().is_enough(seen, given)


def _may_be_trained_with(seen: Pass) -> bool:
    """Whether what a pass comes to may decide the training, so that every batch of it is wanted.

    One in which no model was called computes statistics, or a vocabulary. One in which a model was called and nothing
    scored may gather features: of a model that cannot be trained, or before the first update if they are kept.
    """
    if seen.trains or seen.scored:
        return False
    return not (seen.forwards and seen.trainable) or (not seen.updates_before and seen.keeps_outputs)


def _samplers(loader: Any) -> list[Any]:
    """What draws a loader's batches, from the outermost to what draws the rows."""
    found = [loader.sampler if loader.batch_sampler is None else loader.batch_sampler]
    while (inner := getattr(found[-1], "batch_sampler", getattr(found[-1], "sampler", None))) is not None:
        found.append(inner)
    return found


def _package(sampler: Any) -> str:
    return type(sampler).__module__.partition(".")[0]
