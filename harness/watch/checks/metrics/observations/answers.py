"""Answers: what a script compares, ranks or cuts off of what a model has just said without a graph."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from harness.watch.events import Fact, Forward, LossCall, Pairing, RankingCall, Scored, Thresholded
from harness.watch.facts.loss_inputs import REGRESSIONS
from harness.watch.recogniser import Recogniser

MIN_ROWS = 8
"""Rows from which on predictions that are the model's are no accident: by reasoning, 2 to the power of 8 is enough."""

MOST_LOOKS = 32
"""Comparisons of the right shapes that are looked at: one that is none of predictions stays one."""

MIN_LABELS = 8
"""Labels that tell a scale. By reasoning, fewer are somebody's single question."""


class PredictionsInPairs(Fact):
    """Each of a model's latest predictions was compared with every label, or every label was subtracted from it."""

    of_run = True
    sign: str
    """-, == or !=."""
    predictions: torch.Size
    labels: torch.Size


class Ranked(Fact):
    """A metric of a ranking was given scores, after a model of the script was called."""

    needs = "metric of a ranking"
    of_run = True
    metric: str
    scores: Sequence[Any]
    references: Sequence[Any]


class LogitsThresholded(Fact):
    """The outputs of a model, which a loss takes for logits, were compared with one number."""

    needs = "threshold of what a model says"
    of_run = True
    threshold: float


class Answers(Recogniser):
    makes = (PredictionsInPairs, Ranked, LogitsThresholded)

    def begin(self) -> None:
        self._looks = 0
        self._of_logits: set[int] = set()
        """The numbers of models whose outputs were given to a loss of logits."""

    def on_pairing(self, event: Pairing) -> None:
        if event.sign == "*" or event.column is None or len(event.column[1]) < MIN_ROWS or self._looks == MOST_LOOKS:
            return
        self._looks += 1
        column, flat = event.column
        if bool((column.squeeze(1) == flat).all()):
            return  # labels and themselves, a model that makes no mistake, or differences of all its answers
        for ours, labels in (column, flat), (flat, column):
            if _are_of_model(ours, event):
                sign, where = event.sign, event.where
                self.tell(PredictionsInPairs(sign=sign, predictions=ours.shape, labels=labels.shape, where=where))

    def on_ranking(self, event: RankingCall) -> None:
        if self.monitor.forwards:  # else no network of this script said them
            metric, scores, where = event.metric, event.scores, event.where
            self.tell(Ranked(metric=metric, scores=scores, references=event.references, where=where))

    def on_loss(self, event: LossCall) -> None:
        if event.function == "binary_cross_entropy_with_logits" and self.monitor.forwards:
            latest = self.monitor.forwards[-1]
            if latest.logits is not None and latest.logits.numel() == event.input.numel():
                self._of_logits.add(self.monitor.number_of(latest.model))

    def on_thresholded(self, event: Thresholded) -> None:
        if self.monitor.number_of(event.forward.model) in self._of_logits:
            self.tell(LogitsThresholded(threshold=event.threshold, where=event.where))


def _are_of_model(values: torch.Tensor, pairing: Pairing) -> bool:
    """Whether the values are a model's answers. Of a difference only its own output tells: anything is subtracted."""
    if pairing.sign != "-":
        return any(_are_predictions(values.reshape(-1), forward) for forward in pairing.forwards)
    logits = [each.logits for each in pairing.forwards[-1:] if not each.gradients and each.logits is not None]
    column = values.dim() == 2
    return column and any(values.data_ptr() == each.data_ptr() and values.numel() == each.numel() for each in logits)


def _are_predictions(values: torch.Tensor, forward: Forward) -> bool:
    """Whether they are the classes that a model has just given to its rows: the likeliest, or those beyond a number."""
    logits = None if forward.logits is None else forward.logits.detach()
    if logits is None or logits.dim() > 2 or len(logits) != len(values) or bool((values == values[0]).all()):
        return False
    if logits.dim() == 2 and logits.shape[1] > 1:
        return bool((logits.argmax(1) == values).all())
    ones, zeros, logits = values == values.max(), values == values.min(), logits.reshape(-1)
    return bool((ones | zeros).all()) and bool(logits[ones].min() >= logits[zeros].max())


class LabelsCompared(Fact):
    """What a regression said without a graph was compared with something. ``where`` is its forward pass."""

    needs = "evaluation of a regression"
    of_run = True
    predicted: torch.Tensor
    labels: torch.Tensor | None = None
    """What the model's own output, as it is, was compared with; None for anything else than its output."""
    trained: tuple[float, float] = 0.0, 0.0
    """The smallest and the largest scale of a batch's labels in training."""


class LabelScales(Recogniser):
    makes = (LabelsCompared,)

    def begin(self) -> None:
        self._trained: dict[tuple[int, ...], tuple[float, float]] = {}
        """The smallest and the largest scale of a batch's labels, by the shape of one answer."""

    def on_loss(self, event: LossCall) -> None:
        if event.function in REGRESSIONS and event.at.sampled and event.target.numel() >= MIN_LABELS:
            scale = scale_of(event.target)
            low, high = self._trained.get(_answer(event.target), (math.inf, 0.0))
            self._trained[_answer(event.target)] = min(low, scale), max(high, scale)

    def on_scored(self, event: Scored) -> None:
        parts = event.parts
        if parts is None and event.loss is not None and event.loss.function in REGRESSIONS:
            parts = event.loss.input, event.loss.target
        logits = event.forward.logits
        if parts is None or logits is None or logits.numel() < MIN_LABELS:
            return
        known = [part for part in parts if _answer(part) in self._trained]
        labels = [other for one, other in (parts, parts[::-1]) if _is_as_said(one, logits)]
        trained = self._trained.get(_answer(labels[0]), (0.0, 0.0)) if len(labels) == 1 else (0.0, 0.0)
        comparable = trained[1] > 0 and labels[0].numel() == logits.numel()
        if known:
            compared = labels[0] if comparable else None
            self.tell(LabelsCompared(predicted=logits, labels=compared, trained=trained, where=event.forward.where))


def scale_of(labels: torch.Tensor) -> float:
    """The root mean square."""
    return float(labels.detach().float().square().mean().sqrt())


def _answer(labels: torch.Tensor) -> tuple[int, ...]:
    return tuple(size for size in labels.shape[1:] if size > 1)


def _is_as_said(tensor: torch.Tensor, logits: torch.Tensor) -> bool:
    """Whether it is the output itself, or a view of it."""
    return tensor.numel() == logits.numel() and tensor.data_ptr() == logits.data_ptr()
