"""Rhythm: how often something happens in a pass over a DataLoader, and how often it would in a whole one."""

from __future__ import annotations

import math
from collections import Counter

from harness.watch.events import Pass


class Rhythm:
    """What happens after every few batches of a pass, as updates do under accumulation."""

    def __init__(self) -> None:
        self.total = 0
        """How often it happened in the pass at hand."""
        self.period = 1
        """Batches from one time to the next, in the latest pass that showed it."""
        self.is_estimate = False
        """Whether the latest answer of :meth:`whole` may be wrong."""
        self._times = self._latest = self._gap = 0
        self._gaps: Counter[int] = Counter()
        self._known = False
        """Whether a pass has shown the period."""

    def beat(self, batch: int) -> None:
        """It happens, after this number of batches."""
        self.total += 1
        if not self._times or batch > self._latest:
            self._times += 1
            self._gap, self._latest = batch - self._latest, batch
            self._gaps[self._gap] += 1

    def whole(self, of: Pass) -> float:
        """How often it would have happened, had the pass not been shortened.

        What comes once in a pass comes once in a whole one. Otherwise a whole one counts as ended by a window, be it
        full or not: Accelerate and most loops make an update for the batches that are left.
        """
        if self._times >= 2:
            self.period, self._known = max(self._gaps, key=lambda gap: (self._gaps[gap], gap)), True
        self.is_estimate = False
        if not of.shortened or of.planned is None or not self.total or (self._times <= 1 and not self._known):
            return self.total
        if self._gaps.total() - self._gaps[self.period] > 2:  # the first and the last window may be others
            self.is_estimate = True
            return self.total * of.planned / of.batches
        fills_up = self._gap < self.period and self._latest == of.batches
        self.is_estimate = of.planned % self.period != 0 and not fills_up
        return self.total / max(1, self._times) * math.ceil(of.planned / self.period)

    def begin_again(self) -> None:
        """Another pass begins."""
        self.total = self._times = self._latest = self._gap = 0
        self._gaps.clear()
