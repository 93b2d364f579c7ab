"""Metric calls: what each metric was computed from, beside what the model said in the evaluation."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch

from harness import launch
from harness.watch.bus import Recogniser
from harness.watch.events import MetricCall, Pass
from harness.watch.facts.evaluations import MOST_ROWS, Evaluations

if TYPE_CHECKING:
    from harness.watch.monitor import Monitor

MOST_CLASSES = 128
"""Classes up to which it is asked whether predictions are the logits' with one number added for each class. Neither
half nor double of it changes a verdict of the corpus."""


@dataclass(eq=False)
class Given:
    """What a metric was given until it is computed."""

    rows: int = 0
    predictions: list[Any] = field(default_factory=list)
    references: list[Any] = field(default_factory=list)
    """The first of them, but more than an evaluation has."""


@dataclass(frozen=True, eq=False)
class Computed:
    """A metric was computed, and the model's own predictions of the evaluation are known."""

    metric: str
    options: Mapping[str, Any]
    where: str | None
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
        predicted = torch.tensor(self.predictions)
        ahead = self.logits.double().gather(1, predicted[:, None]) - self.logits.double()
        # By how much another class may be raised above the predicted one, at most, in every row.
        room = torch.full((classes, classes), math.inf, dtype=torch.float64)
        room = room.scatter_reduce(0, predicted[:, None].expand_as(ahead), ahead, "amin")
        for between in range(classes):
            room = torch.minimum(room, room[:, between, None] + room[None, between, :])
        return bool((room.diagonal() >= 0).all())


class MetricCalls(Recogniser):
    """What the metric at hand was computed from."""

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.computed: Computed | None = None
        """By the latest call; None where it computed nothing that can be compared."""
        self._evaluations = monitor.fact(Evaluations)
        self._given: dict[tuple[str, int], Given] = {}

    def on_metric(self, event: MetricCall) -> None:
        self.computed = None
        key = (event.metric, event.source)
        given = self._given.setdefault(key, Given())
        given.rows += len(event.references)
        if len(given.references) <= 2 * MOST_ROWS:
            given.predictions += event.predictions
            given.references += event.references
        if event.whole:
            del self._given[key]
            self.computed = self._compared(given, event)

    def _compared(self, given: Given, event: MetricCall) -> Computed | None:
        evaluation = self._evaluations.latest
        if not evaluation.usable or evaluation.of is None or not given.references:
            return None
        logits, labels = torch.cat(evaluation.logits), evaluation.labels
        predictions, references = _whole(given.predictions), _whole(given.references)
        if predictions is None or references is None or len(set(labels)) > logits.shape[1]:
            return None
        about = event.metric, event.options, event.where
        agreed = self._evaluations.agreed()
        return Computed(*about, predictions, references, given.rows, evaluation.of, logits, list(labels), agreed)


def _whole(values: list[Any]) -> list[int] | None:
    """The values as whole numbers; None where they are something else."""
    if not all(isinstance(value, (int, float, bool)) and float(value).is_integer() for value in values):
        return None
    return [int(value) for value in values]
