from __future__ import annotations

import math
from typing import Any

from harness.watch.check import Check
from harness.watch.events import Forward, MetricCall
from harness.watch.facts.datasets import plain
from harness.watch.monitor import Monitor

MIN_ROWS = 32
"""Labels that are looked at before something is said of all of them. Neither half nor double of it changes a verdict of
the corpus."""

HALF = 0.5
"""Output from which on a regression to 0 and 1 says 1."""


class ClassesAsNumbers(Check):
    """The model has one output for two classes: they are fitted as numbers, or its likeliest class is always the first.

    ## Why is this a bug?
    `num_labels=1` turns the task into a regression to whole numbers. The output is not a logit, and `argmax` over one
    output is 0 whatever the model has learned, so every row is assigned to the first class.

    ## What to do
    Give the model an output for each class (`num_labels=2`), or make predictions with a threshold.

    ## When it is right
    Floating point targets of a regression are not reported, nor is a regression to 0 and 1 whose predictions are made
    with a threshold.

    ## References
    - https://github.com/huggingface/transformers/issues/45611
    """

    needs = "model with one output"
    formerly = ("inputs::wrong-labels", "inputs::labels")
    explains = ("loss::not-finite", "loss::constant", "gradients::cut-off")

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.targets: set[float] = set()
        """Of a regression, until three differ."""
        self.regressed = 0
        self.largest: float | None = None
        """Output of a model with one, in the forwards without training since the latest metric."""

    def on_forward(self, event: Forward) -> None:
        if not self.monitor.is_sampled():
            return
        if event.gradients:
            self._regression(event)
        elif event.logits is not None and event.logits.shape[1:] == (1,) and event.logits.numel():
            self.looked = True
            self.largest = max(float(event.logits.max()), -math.inf if self.largest is None else self.largest)

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


def _number(value: Any) -> float | None:
    """A prediction of one row; None where it is something else."""
    value = plain(value)
    return float(value) if isinstance(value, (int, float)) else None
