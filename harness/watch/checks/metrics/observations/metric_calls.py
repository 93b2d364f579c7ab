"""Metric calls: what each metric was computed from, beside what the model said in the evaluation."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch

from harness import launch
from harness.watch.events import End, Fact, LossCall, MetricCall, Pass
from harness.watch.facts.datasets import base
from harness.watch.facts.scored_passes import MOST_ROWS, ScoredPasses
from harness.watch.recogniser import Recogniser

MOST_CLASSES = 128
"""Classes up to which it is asked whether predictions are the logits' with one number added for each class."""


@dataclass(eq=False)
class Given:
    """What a metric was given until it is computed."""

    rows: int = 0
    predictions: list[Any] = field(default_factory=list)
    references: list[Any] = field(default_factory=list)
    """The first of them, but more than an evaluation has."""


class Computed(Fact):
    """A metric was computed, and the model's own predictions of the evaluation are known."""

    needs = "library's metric over an evaluation"
    of_run = True
    metric: str
    options: Mapping[str, Any] = field(default_factory=dict)
    predictions: list[int]
    references: list[int]
    rows: int
    """References that the metric was given."""
    of: Pass
    logits: torch.Tensor
    """(rows, classes)."""
    labels: list[int]
    agreed: torch.Tensor | None = None
    """The class of each row that was likeliest in all earlier evaluations of the same rows, -1 where they differ; None
    if there was none."""
    of_classes: bool = True
    """Whether a loss was computed from logits of this width; from features something else predicts."""

    @cached_property
    def best(self) -> list[int]:
        """The likeliest class of each row."""
        found: list[int] = self.logits.argmax(1).tolist()
        return found

    @property
    def of_several_processes(self) -> bool:
        """Whether each process sees its own part of the evaluation, and what is gathered is the whole."""
        return launch.world_size() not in (None, 1)

    @property
    def comparable(self) -> bool:
        """Whether the metric was given a row for each of the evaluation's, to be compared one by one."""
        return not self.of_several_processes and self.rows == len(self.labels)

    @property
    def in_another_order(self) -> bool:
        """Whether the predictions are the model's own, in another order than the rows."""
        permuted = self.predictions != self.best and Counter(self.predictions) == Counter(self.best)
        return permuted and len(set(self.best)) > 1 and not self.by_threshold

    @property
    def by_threshold(self) -> bool:
        """Whether a number that is added to the logits of each class, the same for all rows, explains the predictions.

        With two classes it is a threshold other than the middle; with more, that some are made likelier on purpose.
        """
        classes = self.logits.shape[1]
        if classes > MOST_CLASSES or not set(self.predictions) <= set(range(classes)):
            return False
        predicted = torch.tensor(self.predictions, device="cpu")
        ahead = self.logits.double().gather(1, predicted[:, None]) - self.logits.double()
        # By how much another class may be raised above the predicted one, at most, in every row.
        room = torch.full((classes, classes), math.inf, dtype=torch.float64, device="cpu")
        room = room.scatter_reduce(0, predicted[:, None].expand_as(ahead), ahead, "amin")
        for between in range(classes):
            room = torch.minimum(room, room[:, between, None] + room[None, between, :])
        return bool((room.diagonal() >= 0).all())


class OtherRowsScored(Fact):
    """A metric was computed from fewer or from more rows than its evaluation has. ``where`` it was."""

    of_run = True
    rows: int
    """Rows of the evaluation."""
    given: int
    """Fewer where no further call of the metric has the others, more where some of them come again."""
    gathered: bool = False
    """Whether they come from several processes."""


class MetricCalls(Recogniser):
    makes = (Computed,)

    def begin(self) -> None:
        self._evaluations = self.fact(ScoredPasses)
        self._given: dict[tuple[str, int], Given] = {}
        self._classes: set[int] = set()
        """Numbers of classes that a loss was computed from the logits of."""

    def on_loss(self, event: LossCall) -> None:
        if event.of_classes and event.input.dim() == 2:
            self._classes.add(event.input.shape[1])

    def on_metric(self, event: MetricCall) -> None:
        key = (event.metric, event.source)
        given = self._given.setdefault(key, Given())
        given.rows += len(event.references)
        if len(given.references) <= 2 * MOST_ROWS:
            given.predictions += event.predictions
            given.references += event.references
        if event.whole:
            del self._given[key]
            computed = self._compared(given, event)
            if computed is not None:
                self.tell(computed)

    def _compared(self, given: Given, event: MetricCall) -> Computed | None:
        evaluation = self._evaluations.latest
        if not evaluation.usable or evaluation.of is None or not given.references:
            return None
        logits, labels = torch.cat(evaluation.logits), evaluation.labels
        predictions, references = _whole(given.predictions), _whole(given.references)
        if predictions is None or references is None or len(set(labels)) > logits.shape[1]:
            return None
        return Computed(
            metric=event.metric,
            options=event.options,
            where=event.where,
            predictions=predictions,
            references=references,
            rows=given.rows,
            of=evaluation.of,
            logits=logits,
            labels=list(labels),
            agreed=self._evaluations.agreed(),
            of_classes=logits.shape[1] in self._classes,
        )


def _whole(values: list[Any]) -> list[int] | None:
    """The values as whole numbers; None where they are something else."""
    if not all(isinstance(value, (int, float, bool)) and float(value).is_integer() for value in values):
        return None
    return [int(value) for value in values]


@dataclass(eq=False)
class ScoresGiven:
    """What the metrics of one evaluation were given, as far as it is rows of it."""

    of: Pass
    labels: list[int]
    given: dict[str, list[int]] = field(default_factory=dict)
    """References, by the metric: those of its first call."""
    in_parts: set[str] = field(default_factory=set)
    """Metrics that were called for one part after the other."""
    part: tuple[str, int, str | None] | None = None
    """The first metric that had fewer rows than there are, how many, and where."""

    def is_repeated_in(self, references: list[int]) -> bool:
        """Whether they are the rows of the whole evaluation, and some of them again."""
        rows = len(self.labels)
        again = references[rows:]
        return references[:rows] == self.labels and 0 < len(again) < rows and is_stretch(again, self.labels)

    def follows_in(self, references: list[int], earlier: ScoresGiven | None) -> bool:
        """Whether they end with the same rows twice, as they were evaluated before and after updates."""
        if earlier is None or earlier.of.updates_before == self.of.updates_before:
            return False
        both = earlier.labels + self.labels
        return references[-len(both) :] == both and base(earlier.of.dataset) == base(self.of.dataset)


class ScoredRows(Recogniser):
    makes = (OtherRowsScored,)

    def begin(self) -> None:
        self._scores: ScoresGiven | None = None
        """Scores of the latest evaluation."""
        self._earlier: ScoresGiven | None = None
        """Scores of the evaluation before."""

    def on_computed(self, fact: Computed) -> None:
        if fact.of_several_processes:
            self._look_at_gathered(fact)
            return
        if self._scores is None or self._scores.of is not fact.of:
            self._tell_part()
            self._earlier, self._scores = self._scores, ScoresGiven(fact.of, fact.labels)
        self._look_at(fact, self._scores)

    def on_end(self, event: End) -> None:
        self._tell_part()

    def _look_at(self, computed: Computed, scores: ScoresGiven) -> None:
        scores.labels = computed.labels
        rows, given, references = len(computed.labels), computed.rows, computed.references
        if not (computed.of.over or computed.of.is_dropped):
            scores.in_parts.add(computed.metric)  # amid the evaluation
        elif given > rows:
            if scores.is_repeated_in(references) or scores.follows_in(references, self._earlier):
                self.tell(OtherRowsScored(rows=rows, given=given, where=computed.where))
        elif given == rows or is_stretch(references, computed.labels):
            if scores.given.setdefault(computed.metric, references) != references:
                scores.in_parts.add(computed.metric)
            if given < rows:
                scores.part = scores.part or (computed.metric, given, computed.where)

    def _tell_part(self) -> None:
        """Tell of a part now that it is known whether the other rows came in further calls."""
        if self._scores is not None and self._scores.part is not None:
            metric, given, where = self._scores.part
            if metric not in self._scores.in_parts:
                self.tell(OtherRowsScored(rows=len(self._scores.labels), given=given, where=where))

    def _look_at_gathered(self, computed: Computed) -> None:
        of, given = computed.of, computed.rows
        whole = len(of.dataset) if hasattr(of.dataset, "__len__") else None
        if whole is None or of.shortened or not of.exhausted or given in (whole, len(computed.labels)):
            return
        self.tell(OtherRowsScored(rows=whole, given=given, gathered=True, where=computed.where))


def is_stretch(part: list[int], whole: list[int]) -> bool:
    """Whether ``part`` is a stretch of ``whole``."""
    letters = {label: chr(number) for number, label in enumerate(set(whole))}  # to search a text takes no time
    if not part or not letters.keys() >= set(part):
        return False
    return "".join(map(letters.__getitem__, part)) in "".join(map(letters.__getitem__, whole))
