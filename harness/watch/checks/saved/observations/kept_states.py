"""Kept states: after which evaluations a state was kept, and by which of their results."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from torch import nn

from harness.torch_objects import share_parameters
from harness.watch.bounded import Latest
from harness.watch.events import End, Fact, ModelSaved, Save, StateAsked
from harness.watch.facts.reported_numbers import HELD_OUT, OTHERS, ReportedNumbers, kind_of
from harness.watch.facts.scored_passes import ScoredPasses
from harness.watch.facts.trained_models import TrainedModels
from harness.watch.recogniser import Recogniser

LARGER = ("accuracy", "f1", "precision", "recall", "mcc", "r2")
"""Kinds of numbers that are better when they are larger."""

SMALLER = ("loss", "error rate", "perplexity", "mse", "rmse", "mae")
"""Kinds of numbers that are better when they are smaller."""

MIN_REPORTED_EVALUATIONS = 4
"""Evaluations that must be known of a number that is only reported. By reasoning: whether a state is kept after each of
three later ones is one chance in eight."""


class StatesKept(Fact):
    """A run is over that keeps a state after some of several evaluations. ``where`` is where it was kept last."""

    needs = "state kept after one of several evaluations"
    by: str | None = None
    """Result by which states are kept so far, where that is a bad one and no good result explains it: "the largest
    loss"."""


class ResultSeries(NamedTuple):
    """One result of several evaluations."""

    name: str
    larger: bool
    """Whether it is better then."""
    values: Mapping[int, tuple[float, float]]
    """Number of updates made to the result, and how far it may be off."""
    reported: bool = False
    """Whether the script says it, and it is not computed here from what the model says."""


class EvaluationCompared(NamedTuple):
    """An evaluation, compared with all before it."""

    at: int
    kept: bool
    """Whether the state was kept after it."""
    best: bool
    worst: bool
    as_before: bool
    """Whether it may be as good as the best before, but for rounding."""


class KeptStates(Recogniser):
    makes = (StatesKept,)

    def begin(self) -> None:
        self._trained, self._evaluations = self.fact(TrainedModels), self.fact(ScoredPasses)
        self._reported = self.fact(ReportedNumbers)
        self._kept: dict[int, str | None] = {}
        """After how many updates the state was asked for, and where: those with an evaluation, and the latest."""
        self._in_memory: dict[int, int] = {}
        """Number of updates made to how often a state was asked for and not saved to a file that is not called the
        best."""
        self._untrained: Latest[tuple[weakref.ref[nn.Module], int, str | None]] = Latest()
        """The same of models that were evaluated, but not trained yet, as one that is built anew to go on from a
        file."""

    def on_state_asked(self, event: StateAsked) -> None:
        if not any(share_parameters(event.module, other) for other in self._trained.all):
            if any(share_parameters(event.module, forward.model) for forward in self.monitor.forwards[-1:]):
                self._untrained.append((weakref.ref(event.module), event.at.updates_made, event.where))
        else:
            evaluated = {result.updates_made for result in self._evaluations.history}
            evaluated.update(made for _, values in self._reported.series for made in values)
            self._kept = {made: where for made, where in self._kept.items() if made in evaluated}
            self._kept[event.at.updates_made] = event.where
            self._in_memory = {made: self._in_memory.get(made, 0) for made in self._kept}
            self._in_memory[event.at.updates_made] += 1

    def _of_trained_since(self) -> None:
        """Count what was asked of modules before they were trained."""
        for module, made, where in self._untrained:
            asked = module()
            if asked is not None and any(share_parameters(asked, other) for other in self._trained.all):
                self._kept.setdefault(made, where)
                self._in_memory[made] = self._in_memory.get(made, 0) + 1

    def on_save(self, event: Save) -> None:
        self._saved(event.at.updates_made, event.path)

    def on_model_saved(self, event: ModelSaved) -> None:
        self._saved(event.at.updates_made, event.folder)

    def _saved(self, made: int, path: str | None) -> None:
        if path is not None and "best" not in Path(path).name.lower():
            self._in_memory[made] = self._in_memory.get(made, 0) - 1

    def on_end(self, event: End) -> None:
        """Who keeps the state after some evaluations and not after others keeps the best."""
        self._of_trained_since()
        series = [each for each in self._series(event.at.updates_made) if next(iter(each.values)) in self._kept]
        if not series:
            return
        places = [place for made, place in self._kept.items() if made] or list(self._kept.values())
        self.tell(StatesKept(by=self._worst_of(series, event.at.updates_made), where=places[-1]))

    def _series(self, end: int) -> Iterator[ResultSeries]:
        first = {result.updates_made: result for result in reversed(self._evaluations.history)}
        accuracies = {made: (each.accuracy, 0.0) for made, each in first.items()}
        losses = {made: (each.loss, 0.0) for made, each in first.items()}
        found = [ResultSeries("accuracy", True, accuracies), ResultSeries("loss", False, losses)]
        for name, reported in self._reported.series:
            values, kind = {made: (each.value, each.half) for made, each in reported.items()}, kind_of(name)
            found += [ResultSeries(name, True, values, True)] * (kind not in SMALLER)
            found += [ResultSeries(name, False, values, True)] * (kind not in LARGER)
        for number in found:
            known = {made: number.values[made] for made in sorted(number.values)}
            known.pop(end, None)  # at the end the state is asked for anyway
            if len(known) >= (MIN_REPORTED_EVALUATIONS if number.reported else 2):
                yield number._replace(values=known)

    def _worst_of(self, series: list[ResultSeries], end: int) -> str | None:
        compared = [(each, list(self._compared(each))) for each in series]
        for _, later in compared:
            kept = [each.kept for each in later]
            if all(kept) or all(each.kept == each.best or each.as_before for each in later):
                return None
        best = [{now.at for now in later if now.best} for each, later in compared if kind_of(each.name) is not None]
        better = set.intersection(*best) if best else set()
        for number, later in compared:
            known = HELD_OUT.search(number.name) and not OTHERS.search(number.name) and kind_of(number.name) is not None
            elsewhere = set(self._kept) - set(number.values) - {end}
            if number.reported and (elsewhere or not known):
                continue  # what is kept is decided by what is not said
            if any(now.kept != now.worst for now in later):
                continue
            only_first = not any(now.kept for now in later)
            in_turn = self._in_memory.get(next(iter(number.values)), 0) <= 0  # as one in every ten epochs
            if not only_first or (better and not in_turn):
                return f"the {'smallest' if number.larger else 'largest'} {number.name}"
        return None

    def _compared(self, series: ResultSeries) -> Iterator[EvaluationCompared]:
        values: Sequence[tuple[int, tuple[float, float]]] = list(series.values.items())
        sign = 1.0 if series.larger else -1.0
        for i, (made, (now, off)) in enumerate(values[1:], start=1):
            before = [sign * value for _, (value, _) in values[:i]]
            value, best = sign * now, max(before)
            yield EvaluationCompared(
                at=made,
                kept=made in self._kept,
                best=value > best,
                worst=value < min(before),
                as_before=off > 0 and abs(value - best) <= 2 * off,
            )
