"""Scored passes: those whose outputs a script computed a loss or a metric of."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakSet

import torch

from harness.watch.bus import Recogniser
from harness.watch.events import Forward, MetricCall, Scored

if TYPE_CHECKING:
    from harness.watch.events import Pass


class ScoredPasses(Recogniser):
    """The passes that said how good a model is; those that only read its outputs are no evaluation."""

    def begin(self) -> None:
        self.all: WeakSet[Pass] = WeakSet()

    def on_forward(self, event: Forward) -> None:
        first = event.output[0] if isinstance(event.output, (tuple, list)) and event.output else event.output
        if event.loss is not None or (torch.is_tensor(first) and first.dim() == 0):  # a module that has the loss in it
            self._score(event)

    def on_scored(self, event: Scored) -> None:
        if not event.by_row:  # a loss of each row is one that chooses among them, or says which are unusual
            self._score(event.forward)

    def on_metric(self, event: MetricCall) -> None:
        for forward in self.monitor.forwards[-1:]:
            self._score(forward)

    def _score(self, forward: Forward) -> None:
        if forward.batch is not None and not forward.gradients:
            self.all.add(forward.batch.of)
