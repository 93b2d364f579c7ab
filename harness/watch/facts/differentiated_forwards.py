"""Differentiated forwards: which forward passes a backward pass goes through, and whether one did before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.watch.bus import Recogniser
from harness.watch.events import Backward, Fact, Forward

if TYPE_CHECKING:
    from harness.watch.monitor import Monitor

KEPT = 64
"""Forwards whose batch is remembered: more than any window of micro-batches has."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ForwardsDifferentiated(Fact):
    """A backward pass went through forward passes, while a DataLoader's batch was at hand."""

    needs = "backward pass of a batch of a DataLoader"
    in_windows = "first"
    again: int = 0
    """Those of other batches that a backward pass had gone through before."""


class DifferentiatedForwards(Recogniser):
    makes = (ForwardsDifferentiated,)

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self._batch_of: dict[int, int] = {}
        """Of the latest forwards, which batch each was of."""
        self._differentiated: set[int] = set()
        """Those that a backward pass went through."""

    def on_forward(self, event: Forward) -> None:
        if event.gradients and event.batch is not None:
            self._batch_of[event.number] = event.batch.number
            for old in [number for number in self._batch_of if number < event.number - KEPT]:
                del self._batch_of[old]
            self._differentiated.intersection_update(self._batch_of)

    def on_backward(self, event: Backward) -> None:
        if event.batch is None or not event.reached or event.inside_step:
            return
        batch = event.batch.number
        again = [n for n in event.reached & self._differentiated if self._batch_of.get(n, batch) != batch]
        self._differentiated |= event.reached
        self.tell(ForwardsDifferentiated(again=len(again), where=event.where))
