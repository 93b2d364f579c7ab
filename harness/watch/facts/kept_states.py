"""Kept states: after which evaluations a state was kept, and by which of their results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from harness.torch_objects import share_parameters
from harness.watch.bus import Recogniser
from harness.watch.events import End, Fact, StateAsked
from harness.watch.facts.evaluations import Evaluations, Result
from harness.watch.facts.trained_models import TrainedModels

Worst = Literal["the largest loss", "the smallest accuracy"]


class StatesKept(Fact):
    """A run is over that keeps a state after some of several evaluations. ``where`` is where it was kept last."""

    needs = "state kept after one of several evaluations"
    by: Worst | None = None
    """By which result so far, where that is a bad one and no good result explains it."""


@dataclass(frozen=True)
class Compared:
    """An evaluation, compared with all before it."""

    kept: bool
    """Whether the state was kept after it."""
    most_accurate: bool
    least_accurate: bool
    smallest_loss: bool
    largest_loss: bool


class KeptStates(Recogniser):
    makes = (StatesKept,)

    def begin(self) -> None:
        self._trained, self._evaluations = self.fact(TrainedModels), self.fact(Evaluations)
        self._kept: dict[int, str | None] = {}
        """After how many updates the state was asked for, and where: those with an evaluation, and the latest."""

    def on_state_asked(self, event: StateAsked) -> None:
        if any(share_parameters(event.module, other) for other in self._trained.all):
            evaluated = {result.updates_made for result in self._evaluations.history}
            self._kept = {made: where for made, where in self._kept.items() if made in evaluated}
            self._kept[event.at.updates_made] = event.where

    def on_end(self, event: End) -> None:
        """Who keeps the state after some evaluations and not after others keeps the best."""
        first = {result.updates_made: result for result in reversed(self._evaluations.history)}
        results = [first[made] for made in sorted(first)]
        if results and results[-1].updates_made == event.at.updates_made:
            results.pop()  # at the end the state is asked for anyway
        if len(results) < 2 or results[0].updates_made not in self._kept:
            return
        later = list(self._compared(results))
        places = [place for made, place in self._kept.items() if made] or list(self._kept.values())
        self.tell(StatesKept(by=_kept_by(later), where=places[-1]))

    def _compared(self, results: list[Result]) -> Iterator[Compared]:
        for i, now in enumerate(results[1:], start=1):
            accuracies = [each.accuracy for each in results[:i]]
            losses = [each.loss for each in results[:i]]
            yield Compared(
                kept=now.updates_made in self._kept,
                most_accurate=now.accuracy > max(accuracies),
                least_accurate=now.accuracy < min(accuracies),
                smallest_loss=now.loss < min(losses),
                largest_loss=now.loss > max(losses),
            )


def _kept_by(later: Sequence[Compared]) -> Worst | None:
    kept = [each.kept for each in later]
    better = any(each.most_accurate and each.smallest_loss for each in later)
    if all(kept) or not (any(kept) or better):
        return None
    if kept in ([each.most_accurate for each in later], [each.smallest_loss for each in later]):
        return None
    if kept == [each.largest_loss for each in later]:
        return "the largest loss"
    return "the smallest accuracy" if kept == [each.least_accurate for each in later] else None
