"""Metrics: computed from every row of the evaluation, aligned, and from what the model said."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import torch

from harness import launch
from harness.watch.events_old import Backward, Forward, Pass, Scored
from harness.watch.invariants.rows import labels_of
from harness.watch.observer import Invariant, Observer, Statement

MOST = 200_000
"""Rows of one evaluation that are kept for comparison."""


@dataclass(eq=False)
class Evaluation:
    """What the model said in the passes since the metric before."""

    passes: list[Pass] = field(default_factory=list)
    logits: list[torch.Tensor] = field(default_factory=list)
    labels: list[int] = field(default_factory=list)
    batches: set[int] = field(default_factory=set)
    usable: bool = True
    told: bool = False


@dataclass
class Given:
    """What one metric was given."""

    predictions: list[Any] = field(default_factory=list)
    references: list[Any] = field(default_factory=list)
    where: str | None = None


class Metrics(Invariant):
    checks = (
        Statement("metrics::every-row", "A metric counts each row of its evaluation once."),
        Statement("metrics::aligned", "A metric compares each prediction with the reference of its own row."),
        Statement("metrics::of-the-predictions", "The predictions are the classes that the model finds likeliest."),
        Statement("metrics::tells-apart", "Two metrics that are reported measure two things.", "warning"),
    )

    def __init__(self, observer: Observer) -> None:
        super().__init__(observer)
        self.evaluation = Evaluation()
        self.given: dict[tuple[str, int], Given] = {}

    def forward(self, event: Forward) -> None:
        if event.gradients or event.batch is None or event.batch.of.trains:
            return
        now = self.evaluation
        if event.batch.number in now.batches or len(now.labels) > MOST:
            now.usable = False  # several forwards of a batch are an ensemble, or something of the script's own
            return
        if event.batch.of not in now.passes:
            if now.passes:
                self.evaluation = now = Evaluation()
            now.passes.append(event.batch.of)
        logits = event.logits
        labels = labels_of(event.batch.data) or labels_of(event.tensors)
        if logits is None or labels is None or logits.dim() != 2 or len(labels) != len(logits) or logits.shape[1] < 2:
            now.usable = False
            return
        now.batches.add(event.batch.number)
        now.logits.append(logits.detach().float().cpu())
        now.labels += labels

    def scored(self, event: Scored) -> None:
        key = (event.metric, event.source)
        given = self.given.setdefault(key, Given())
        given.predictions += event.predictions
        given.references += event.references
        given.where = event.where
        if not event.whole:
            return
        del self.given[key]
        if self.evaluation.usable and self.evaluation.passes and given.references:
            self._compare(given, event)

    def _compare(self, given: Given, event: Scored) -> None:
        labels, logits = self.evaluation.labels, torch.cat(self.evaluation.logits)
        predictions, references = _whole(given.predictions), _whole(given.references)
        if predictions is None or references is None or len(set(labels)) > logits.shape[1]:
            return
        if launch.world_size() not in (None, 1):
            self._gathered(references, given)
            return
        best = logits.argmax(1).tolist()
        rows = len(labels)
        if len(references) != rows:
            fewer = "fewer" if len(references) < rows else "more"
            if not _contains(references, labels) and fewer == "fewer":
                return  # something of the script's own
            self.found(
                "metrics::every-row",
                expected=f"{rows} rows, as many as the evaluation has",
                observed=f"{len(references)}, {fewer}",
                hint="Give the metric every batch, once; with several processes through gather_for_metrics.",
                where=given.where,
            )
            return
        if references == best and predictions == labels and best != labels:
            self._misaligned("predictions and references are given in each other's place", given)
        elif references != labels and Counter(references) == Counter(labels) and predictions == best:
            self._misaligned("the references are in another order than the predictions", given)
        elif references == labels and predictions != best:
            if Counter(predictions) == Counter(best) and len(set(best)) > 1 and not _by_threshold(logits, predictions):
                self._misaligned("the predictions are in another order than the references", given)
            elif not _by_threshold(logits, predictions):
                wrong = sum(one != other for one, other in zip(predictions, best, strict=True))
                self.found(
                    "metrics::of-the-predictions",
                    expected="logits.argmax(dim=-1) of each row",
                    observed=f"{wrong} of {rows} predictions are another class, and no threshold explains them",
                    hint="Take the argmax over the classes, of the logits of the same forward pass.",
                    where=given.where,
                )
        self._average(given, event)

    def _gathered(self, references: list[int], given: Given) -> None:
        """Of several processes each sees its own part; what is gathered is the whole."""
        passes = self.evaluation.passes
        whole = len(passes[0].dataset) if len(passes) == 1 and hasattr(passes[0].dataset, "__len__") else None
        if (
            whole is None
            or passes[0].shortened
            or not passes[0].exhausted
            or len(references) in (whole, len(self.evaluation.labels))
        ):
            return
        self.found(
            "metrics::every-row",
            expected=f"{whole} rows, as many as the evaluation has",
            observed=f"{len(references)}",
            hint="Gather with accelerator.gather_for_metrics, which drops the rows that fill up the last batch.",
            where=given.where,
        )

    def _misaligned(self, observed: str, given: Given) -> None:
        self.found(
            "metrics::aligned",
            expected="the prediction and the reference of one row at the same place",
            observed=observed,
            hint="Collect both from the same batch, in the same order: metric(predictions=..., references=...).",
            where=given.where,
        )

    def _average(self, given: Given, event: Scored) -> None:
        if event.options.get("average") == "micro" and "f1" in event.metric:
            self.found(
                "metrics::tells-apart",
                expected="average='binary' or 'macro'",
                observed="average='micro' makes F1 the accuracy",
                hint="Choose the average that the benchmark reports; right if you know that it is the accuracy.",
                where=given.where,
            )

    def snapshot(self, model: Any) -> None:
        self._evaluated()

    def backward_begins(self, event: Backward) -> None:
        self._evaluated()

    def ends(self, _: None) -> None:
        self._evaluated()

    def _evaluated(self) -> None:
        """Tell what the latest evaluation came to, once."""
        now = self.evaluation
        if now.told or not now.usable or not now.labels:
            return
        now.told = True
        logits, labels = torch.cat(now.logits), torch.tensor(now.labels)
        if bool((labels < 0).any()) or int(labels.max()) >= logits.shape[1]:
            return
        accuracy = float((logits.argmax(1) == labels).float().mean())
        self.observer.emit("evaluated", (accuracy, float(torch.nn.functional.cross_entropy(logits, labels))))


def _whole(values: list[Any]) -> list[int] | None:
    """The values as whole numbers; None where they are something else."""
    if not all(isinstance(value, (int, float, bool)) and float(value).is_integer() for value in values):
        return None
    return [int(value) for value in values]


def _contains(part: list[int], whole: list[int]) -> bool:
    """Whether ``part`` is a stretch of ``whole``."""
    width = len(part)
    return width > 0 and any(whole[start : start + width] == part for start in range(len(whole) - width + 1))


def _by_threshold(logits: torch.Tensor, predictions: list[int]) -> bool:
    """Whether a threshold other than the middle explains the predictions of two classes."""
    if logits.shape[1] != 2 or not set(predictions) <= {0, 1}:
        return False
    margin = (logits[:, 1] - logits[:, 0]).tolist()
    ones = [m for m, prediction in zip(margin, predictions, strict=True) if prediction == 1]
    zeros = [m for m, prediction in zip(margin, predictions, strict=True) if prediction == 0]
    return not ones or not zeros or min(ones) >= max(zeros)
