from __future__ import annotations

import math
from typing import Any

from harness.watch.check import Check
from harness.watch.events import End, Forward, InnerForward, LossCall, MetricCall
from harness.watch.facts.batches import labels_of
from harness.watch.facts.datasets import plain
from harness.watch.facts.tokens import Tokens
from harness.watch.monitor import Monitor

MIN_ROWS = 32
"""Labels that are looked at before something is said of all of them. A guess."""

MOST_ROWS = 4096
"""Rows of a loss call up to which their labels are looked at one by one."""

IGNORED = -100
"""The label that torch's cross-entropy leaves out, unless told otherwise."""

MOST_MASKED = 0.3
"""Largest share of masked tokens in a masked language model; where more are, diffusion over tokens may be meant, which
says all of them. By reasoning: BERT masks 0.15."""

HALF = 0.5
"""Output from which on a regression to 0 and 1 says 1."""


class WrongLabels(Check):
    """The labels that reach the loss are not the classes of the rows.

    ## Why is this a bug?
    A loss takes any whole numbers. A single class for all rows teaches a constant, classes fitted as numbers give no
    probabilities, and labels of a masked language model that name the mask, or every word, teach it to copy.

    ## What to do
    Look at the column that becomes the labels.

    ## When it is right
    Labels of tokens, of which those of padding and of words that are not masked are -100, are not reported; nor are
    rows without a label (-100), labels that the script makes for a contrastive loss, floating point targets of a
    regression, and a regression to 0 and 1 whose predictions are made with a threshold.

    ## References
    - https://github.com/huggingface/transformers/issues/45611
    """

    id = "inputs::wrong-labels"
    needs = "labels of classes"
    formerly = ("inputs::labels",)
    explains = ("loss::not-finite", "loss::constant", "gradients::cut-off")

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.tokens = monitor.fact(Tokens)
        self.classes: set[int] = set()
        """Labels of rows, until two differ."""
        self.rows = 0
        """With these."""
        self.where: str | None = None
        """The latest loss that they were given to."""
        self.targets: set[float] = set()
        """Of a regression, until three differ."""
        self.regressed = 0
        self.largest: float | None = None
        """Output of a model with one, in the forwards without training since the latest metric."""

    def on_forward(self, event: Forward) -> None:
        self._masked_words(event)
        if not self.monitor.is_sampled():
            return
        if event.gradients:
            self._regression(event)
        elif event.logits is not None and event.logits.shape[1:] == (1,) and event.logits.numel():
            self.largest = max(float(event.logits.max()), -math.inf if self.largest is None else self.largest)

    def on_inner_forward(self, event: InnerForward) -> None:
        self._masked_words(event)

    def _masked_words(self, event: Forward) -> None:
        """A masked language model is trained to say the words behind the masks, and only those."""
        ids, labels, mask = self.tokens.ids, event.tensors.get("labels"), self.tokens.special("mask_token_id")
        if ids is None or labels is None or labels.shape != ids.shape or mask is None or not (ids == mask).any():
            return
        self.looked = True
        counted = labels != IGNORED
        if (ids == mask).float().mean() > MOST_MASKED:
            return
        hidden = counted & (ids == mask)
        observed = None
        if hidden.any() and bool((labels[hidden] == mask).all()):
            observed = "the labels at the masked places are the mask itself"
        elif int(counted.sum()) > 0.5 * labels.numel() and bool((labels == ids)[counted & (ids != mask)].all()):
            observed = f"{int(counted.sum())} of {labels.numel()} tokens are labelled; most of them are not masked"
        if observed is not None:
            self.found(
                expected="the word behind each mask, and -100 elsewhere",
                observed=observed,
                where=event.where,
                update=self.monitor.update,
                hint="Copy the ids before they are masked, and set the labels of all other places to -100.",
            )

    def _regression(self, event: Forward) -> None:
        """Classes 0 and 1 that a model with one output is fitted to as numbers."""
        labels = event.tensors.get("labels")
        outputs = getattr(getattr(event.model, "config", None), "num_labels", None)
        if labels is None or labels.is_floating_point() or outputs != 1:
            return
        self.looked = True
        if len(self.targets) <= 2:
            self.targets.update(float(value) for value in labels.flatten().tolist())
        self.regressed += labels.numel()
        if self.regressed >= MIN_ROWS and self.targets == {0.0, 1.0}:
            self._not_classes("num_labels=1 makes a regression of them: all targets are 0 or 1", event)

    def on_loss(self, event: LossCall) -> None:
        if event.function != "cross_entropy" or event.target.dim() != 1 or event.target.is_floating_point():
            return
        self.looked = True
        labels = event.target
        if event.batch is None or event.input.dim() != 2 or len(labels) > MOST_ROWS or len(self.classes) > 1:
            return
        if labels_of(event.batch.data) == labels.tolist():  # others are made by the script, as a contrastive loss's are
            self.classes.update(labels.tolist())
            self.rows += len(labels)
            self.where = event.where

    def on_metric(self, event: MetricCall) -> None:
        """The likeliest of one output is always the first."""
        largest, self.largest = self.largest, None
        predicted, true = set(map(_number, event.predictions)), set(map(_number, event.references))
        if largest is not None and largest >= HALF and predicted == {0.0} and true == {0.0, 1.0}:
            self._not_classes("num_labels=1 gives one output, and its argmax is 0 for every row", event)

    def _not_classes(self, observed: str, event: MetricCall | Forward) -> None:
        self.found(
            expected="classes that the model has an output for",
            observed=observed,
            where=event.where,
            update=self.monitor.update,
        )

    def on_end(self, event: End) -> None:
        if self.rows >= MIN_ROWS and len(self.classes) == 1:
            self.found(
                expected="rows of more than one class",
                observed=f"all {self.rows} rows that were trained on have the label {next(iter(self.classes))}",
                where=self.where,
                update=1,
                hint="Look at the column that becomes the labels, and at the order of the rows.",
            )


def _number(value: Any) -> float | None:
    """A prediction of one row; None where it is something else."""
    value = plain(value)
    return float(value) if isinstance(value, (int, float)) else None
