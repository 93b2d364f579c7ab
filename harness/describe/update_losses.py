"""Update losses: what was differentiated for each of the first updates, added up; of several ranks the mean."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from harness.watch.events import BackwardBegins
from harness.watch.monitor import ALWAYS_SAMPLED
from harness.watch.recogniser import Recogniser


class UpdateLosses(Recogniser):
    """The sum of the losses of an update's backward passes, which is the same whether the batch is split or not."""

    def begin(self) -> None:
        self._sums: defaultdict[str, float] = defaultdict(float)
        """Losses by the number of the update, which is a string as in JSON."""

    def on_backward_begins(self, event: BackwardBegins) -> None:
        if event.root.numel() == 1 and event.at.update <= ALWAYS_SAMPLED and not event.inside_step:
            self._sums[str(event.at.update)] += float(event.root.detach()) / event.scale

    @property
    def losses(self) -> list[float]:
        """Losses in the order of the updates."""
        return list(self._sums.values())

    def summary(self) -> dict[str, float]:
        return dict(self._sums)

    def compare(self, summaries: Sequence[dict[str, float]]) -> None:
        for update in self._sums:
            self._sums[update] = float(np.mean([each[update] for each in summaries if update in each]))
