"""Plateaus: what a ReduceLROnPlateau is given, beside what the evaluation before came to."""

from __future__ import annotations

import math
from typing import Literal
from weakref import WeakKeyDictionary

from harness.watch.events import Fact, SchedulerStep, Scored
from harness.watch.facts.scored_passes import Result, ScoredPasses
from harness.watch.recogniser import Recogniser

ROUNDED = 1e-4
"""Largest difference of an accuracy that was rounded before it was given. Four digits are usual."""

MEAN_LOSS_RTOL = 0.02
"""Largest difference, as a share, of a loss that was averaged over batches of unequal size."""

MOST_BATCHES = 4096
"""Comparisons after one update that are counted: more than an evaluation has."""

MIN_KNOWN_VALUES = 2
"""Different values that must be known for what they are. By reasoning: one may be another number by chance."""


class PlateauStepped(Fact):
    """A ReduceLROnPlateau was stepped after an evaluation whose results are known. ``where`` is where it was made."""

    needs = "ReduceLROnPlateau that is stepped after an evaluation"
    mode: Literal["min", "max"]
    value: float
    """What it was given."""
    misjudged: bool = False
    """Whether that and another value before are an accuracy where the mode is "min", or a loss where it is "max"."""


class Plateaus(Recogniser):
    makes = (PlateauStepped,)

    def begin(self) -> None:
        self._evaluations = self.fact(ScoredPasses)
        self._known: WeakKeyDictionary[object, set[float]] = WeakKeyDictionary()
        """Scheduler to the values that were of the wrong kind for its mode."""
        self._agreed: list[tuple[int, int]] = []
        """Comparisons of what the model says since the latest update: how many agree, and of how many."""
        self._agreed_at = -1

    def on_scored(self, event: Scored) -> None:
        if event.agrees is None or not any(hasattr(each, "mode") for each in self.monitor.schedulers):
            return
        if self._agreed_at != self.monitor.updates_made:
            self._agreed, self._agreed_at = [], self.monitor.updates_made
        if len(self._agreed) < MOST_BATCHES:
            self._agreed.append((int(event.agrees.sum()), event.agrees.numel()))

    def _is_share_that_agrees(self, value: float) -> bool:
        """Whether it is an accuracy that the script computed by hand, of one comparison or of all."""
        if self._agreed_at != self.monitor.updates_made:
            return False
        in_all = tuple(sum(counts) for counts in zip(*self._agreed, strict=True))
        shares = {right / of for right, of in (*self._agreed, in_all) if 0 < right < of}
        return any(abs(value - share) <= ROUNDED or abs(value - 100 * share) <= 100 * ROUNDED for share in shares)

    def on_scheduler_step(self, event: SchedulerStep) -> None:
        value, mode = event.metric, getattr(event.scheduler, "mode", None)
        if value is None or mode not in ("min", "max"):
            return
        now = [each for each in self._evaluations.history[-3:] if each.updates_made == self.monitor.updates_made]
        if not now and self._agreed_at != self.monitor.updates_made:
            return
        is_wrong = _is_accuracy if mode == "min" else _is_loss
        known = self._known.setdefault(event.scheduler, set())
        wrong = any(is_wrong(value, each) for each in now) or (mode == "min" and self._is_share_that_agrees(value))
        if wrong and len(known) < MIN_KNOWN_VALUES:
            known.add(value)
        made = self.monitor.schedulers.get(event.scheduler) or event.where
        self.tell(
            PlateauStepped(mode=mode, value=value, misjudged=wrong and len(known) == MIN_KNOWN_VALUES, where=made)
        )


def _is_accuracy(value: float, of: Result) -> bool:
    same = abs(value - of.accuracy) <= ROUNDED or abs(value - 100 * of.accuracy) <= 100 * ROUNDED
    return same and not math.isclose(value, of.loss, rel_tol=MEAN_LOSS_RTOL)


def _is_loss(value: float, of: Result) -> bool:
    return math.isclose(value, of.loss, rel_tol=MEAN_LOSS_RTOL) and not math.isclose(
        value, of.accuracy, rel_tol=2 * MEAN_LOSS_RTOL
    )
