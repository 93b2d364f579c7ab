"""Evaluation modes: passes without training in train mode, or with a graph, by what comes after them."""

from __future__ import annotations

from harness.watch.bus import Recogniser
from harness.watch.events import Backward, End, Fact, Forward, Pass
from harness.watch.facts.evaluations_by_hand import ON_PURPOSE
from harness.watch.facts.modes import FirstForward, PassEvaluated
from harness.watch.facts.scored_passes import ScoredPasses


class EvaluatedInTrainMode(Fact):
    """A model was evaluated in train mode, and neither for samples nor to renew statistics. ``where`` is its call."""

    of_run = True
    active: int
    """Modules that behave otherwise in train mode, and are."""


class EvaluatedWithGraph(Fact):
    """The outputs of an evaluation carried a graph for a backward pass that never came. ``where`` is the call."""

    of_run = True


class EvaluationModes(Recogniser):
    makes = (EvaluatedInTrainMode, EvaluatedWithGraph)

    def begin(self) -> None:
        self._scored = self.fact(ScoredPasses)
        self._in_train_mode: list[tuple[Pass, FirstForward]] = []
        """Since the latest backward pass: what comes next says what they were for."""
        self._with_graph: list[tuple[Pass, FirstForward]] = []
        """Since then, too: it may be one of theirs."""

    def on_evaluated(self, fact: PassEvaluated) -> None:
        if fact.first.training and fact.first.active and not fact.repeated:
            self._in_train_mode.append((fact.of, fact.first))
        if fact.first.gradients:
            self._with_graph.append((fact.of, fact.first))

    def on_forward(self, event: Forward) -> None:
        if self._in_train_mode and not event.model.training:
            number = self.monitor.number_of(event.model)
            held = self._in_train_mode
            self._in_train_mode = [pair for pair in held if pair[0].model != number or not self._renews(*pair)]

    def _renews(self, of: Pass, first: FirstForward) -> bool:
        """Whether it can only have been for the statistics of batch normalisation."""
        return first.norms and of not in self._scored.all

    def on_backward(self, event: Backward) -> None:
        self._tell()

    def on_end(self, event: End) -> None:
        self._tell()

    def _tell(self) -> None:
        for of, first in self._in_train_mode:
            rounds = sum(other.dataset is of.dataset and other.model == of.model for other, _ in self._in_train_mode)
            if not of.trains and rounds < ON_PURPOSE and not (first.averages and self._renews(of, first)):
                self.tell(EvaluatedInTrainMode(active=first.active, where=first.where))
        for of, first in self._with_graph:
            if not of.trains:
                self.tell(EvaluatedWithGraph(where=first.where))
        self._in_train_mode.clear()
        self._with_graph.clear()
