"""Classes: the labels that rows are trained on, those that a loss leaves out, and those of a model with one output."""

from __future__ import annotations

import math
from collections.abc import Collection
from numbers import Real
from typing import Any

from harness.watch.events import IGNORED, BackwardBegins, End, Fact, Forward, LossCall, MetricCall, TrainerMade
from harness.watch.facts.datasets import plain, stored_columns
from harness.watch.host import on_host
from harness.watch.recogniser import Recogniser
from harness.watch.run.batches import labels_of

MOST_ROWS = 4096
"""Rows of a loss call up to which their labels are looked at one by one."""

MOST_PREFERENCES = 512
"""Rows whose scores are read, the first ones."""


class LabelsOverTraining(Fact):
    """A training is over in which losses were given labels of classes. ``where`` is the last loss of a batch's own."""

    needs = "labels of classes"
    of_run = True
    classes: Collection[int] = ()
    """The labels that batches came with and losses were given, until two differed."""
    rows: int = 0
    """Rows with these labels."""


class ClassesDifferentiated(Fact):
    """A loss of rows with one label each is differentiated. ``where`` it was computed."""

    needs = "labels of classes"
    in_windows = "first"
    classes: int
    ignored: int
    """The label that is left out."""
    rows: int
    left_out: int = 0
    """Rows with this label."""


class OneOutput(Fact):
    """A model with one output was called."""

    needs = "model with one output"
    targets: Collection[float] = ()
    """Labels that are whole numbers, and that it has been trained on so far, until three differed."""
    trained: int = 0
    """Labels so far; 0 where the call was none of training."""


class OneOutputScored(Fact):
    """A metric was computed after a model with one output was called without training."""

    largest: float
    """Output."""
    predictions: Collection[float | None]
    """The different ones; None for something else than a number."""
    references: Collection[float | None]


class PreferencesGiven(Fact):
    """A Trainer was given rows with scores of chosen and rejected answers. ``where`` it was made."""

    needs = "Trainer with scores of chosen and rejected answers"
    in_windows = "first"
    of_run = True
    chosen: str
    """The column of scores."""
    rejected: str
    rows: int
    """Rows in which the two differ."""
    lower: int = 0
    """Rows in which the chosen answer has the lower score."""


class ClassesTrained(Recogniser):
    makes = (LabelsOverTraining,)

    def begin(self) -> None:
        self._any = False
        self._classes: set[int] = set()
        self._rows = 0
        self._where: str | None = None

    def on_loss(self, event: LossCall) -> None:
        if event.function != "cross_entropy" or event.target.dim() != 1 or event.target.is_floating_point():
            return
        self._any = True
        if event.batch is None or event.input.dim() != 2 or len(event.target) > MOST_ROWS or len(self._classes) > 1:
            return
        given = labels_of(event.batch.data)
        if given is None or len(given) != len(event.target):
            return
        labels = on_host(event.target)
        if given == labels.tolist():  # others are made by the script, as a contrastive loss's are
            self._classes.update(labels.tolist())
            self._rows += len(labels)
            self._where = event.where

    def on_end(self, event: End) -> None:
        if self._any:
            self.tell(LabelsOverTraining(classes=self._classes, rows=self._rows, where=self._where))


class ClassesInLosses(Recogniser):
    makes = (ClassesDifferentiated,)

    def on_backward_begins(self, event: BackwardBegins) -> None:
        if not event.at.sampled or not event.forwards:
            return
        for call in event.losses:
            if call.function == "cross_entropy" and _is_of_rows(call, event.forwards[-1]):
                ignored = call.options.get("ignore_index", IGNORED)
                self.tell(
                    ClassesDifferentiated(
                        classes=call.input.shape[1],
                        ignored=ignored,
                        rows=len(call.target),
                        left_out=int((on_host(call.target) == ignored).sum()),
                        where=call.where,
                    )
                )


class OneOutputs(Recogniser):
    makes = (OneOutput, OneOutputScored)

    def begin(self) -> None:
        self._targets: set[float] = set()
        """Targets of a regression, until three differ."""
        self._trained = 0
        self._largest: float | None = None
        """Output of a model with one, in the forwards without training since the latest metric."""

    def on_forward(self, event: Forward) -> None:
        if not event.at.sampled:
            return
        if event.gradients:
            self._regression(event)
        elif event.logits is not None and event.logits.shape[1:] == (1,) and event.logits.numel():
            self._largest = max(float(event.logits.max()), -math.inf if self._largest is None else self._largest)
            self.tell(OneOutput(where=event.where))

    def _regression(self, event: Forward) -> None:
        """Classes that a model with one output is fitted to as numbers."""
        labels = event.tensors.get("labels")
        outputs = getattr(getattr(event.model, "config", None), "num_labels", None)
        if labels is None or labels.is_floating_point() or outputs != 1:
            return
        if len(self._targets) <= 2:
            self._targets.update(float(value) for value in labels.flatten().tolist())
        self._trained += labels.numel()
        self.tell(OneOutput(targets=self._targets, trained=self._trained, where=event.where))

    def on_metric(self, event: MetricCall) -> None:
        largest, self._largest = self._largest, None
        if largest is not None:
            predicted, true = set(map(_number, event.predictions)), set(map(_number, event.references))
            self.tell(OneOutputScored(largest=largest, predictions=predicted, references=true, where=event.where))


class Preferences(Recogniser):
    makes = (PreferencesGiven,)

    def on_trainer_made(self, event: TrainerMade) -> None:
        dataset = getattr(event.trainer, "train_dataset", None)
        columns = stored_columns(dataset, lambda name: "chosen" in name or "rejected" in name, MOST_PREFERENCES)
        for name, values in columns.items():
            other = name.replace("chosen", "rejected")
            pairs = zip(values, columns.get(other, ()), strict=False)
            differ = [(one, two) for one, two in pairs if _are_scores(one, two) and one != two]
            rows, lower = len(differ), sum(one < two for one, two in differ)
            self.tell(PreferencesGiven(chosen=name, rejected=other, rows=rows, lower=lower, where=event.where))


def _is_of_rows(call: LossCall, forward: Forward) -> bool:
    """Whether each row that the model was given has one label, and not each of its tokens."""
    given = [len(tensor) for tensor in forward.tensors.values() if tensor.dim() > 0]
    if call.target.dim() != 1 or call.target.is_floating_point() or call.input.dim() != 2:
        return False
    return bool(given) and all(rows == len(call.target) for rows in given)


def _number(value: Any) -> float | None:
    """A prediction of one row; None where it is something else."""
    value = plain(value)
    return float(value) if isinstance(value, (int, float)) else None


def _are_scores(*values: Any) -> bool:
    return all(isinstance(each, Real) and not isinstance(each, bool) for each in values)
