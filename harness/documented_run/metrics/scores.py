"""Scores of any number of classes, as a module of Hugging Face Evaluate whose configuration names the score."""

from collections.abc import Callable, Sequence
from typing import Any

import datasets
import evaluate
import numpy as np
from numpy.typing import NDArray

_DESCRIPTION = "Accuracy, an average of F1 over classes, or Matthews' correlation, with scikit-learn's definitions."
_INPUTS = """
Args:
    predictions: predicted labels, whole numbers from 0.
    references: true labels, whole numbers from 0.
Returns:
    The score, under the configuration's name.
"""

Table = NDArray[np.float64]
"""Rows counted by true (first axis) and predicted class (second axis)."""


def table(predictions: Sequence[int], references: Sequence[int]) -> Table:
    """The rows by true and predicted class; square, as wide as the largest label needs, at least 2.

    >>> table([1, 0, 1, 1], [1, 0, 0, 1])
    array([[1., 1.],
           [0., 2.]])
    """
    size = max(2, 1 + max(max(predictions), max(references)))
    counted = np.zeros((size, size))
    np.add.at(counted, (np.asarray(references), np.asarray(predictions)), 1)
    return counted


def accuracy(rows: Table) -> float:
    """The share of equal labels."""
    return float(rows.trace() / rows.sum())


def f1_of_classes(rows: Table) -> Table:
    """F1 of each class, 0 where a class neither occurs nor was predicted."""
    named = rows.sum(axis=0) + rows.sum(axis=1)
    each: Table = 2 * rows.diagonal() / np.maximum(named, 1)
    return each


def f1(rows: Table) -> float:
    """F1 of label 1, the others being negative."""
    return float(f1_of_classes(rows)[1])


def f1_macro(rows: Table) -> float:
    """The mean of F1 over the classes that occur or were predicted."""
    named = rows.sum(axis=0) + rows.sum(axis=1)
    return float(f1_of_classes(rows)[named > 0].mean())


def f1_weighted(rows: Table) -> float:
    """The mean of F1 over the classes, weighted by how often each occurs."""
    return float(np.average(f1_of_classes(rows), weights=rows.sum(axis=1)))


def matthews_correlation(rows: Table) -> float:
    """The correlation of true and predicted classes, Gorodkin's where they are many; 0 where one is constant."""
    true, predicted, total = rows.sum(axis=1), rows.sum(axis=0), rows.sum()
    spread = (total**2 - true @ true) * (total**2 - predicted @ predicted)
    return float((rows.trace() * total - true @ predicted) / np.sqrt(spread)) if spread else 0.0


SCORES: dict[str, Callable[[Table], float]] = {
    "accuracy": accuracy,
    "f1": f1,
    "f1_macro": f1_macro,
    "f1_micro": accuracy,  # each row has one label: what one class lacks another has wrongly
    "f1_weighted": f1_weighted,
    "matthews_correlation": matthews_correlation,
}


class Scores(evaluate.Metric):
    """What ``evaluate.load`` instantiates."""

    def _info(self) -> Any:
        label = datasets.Value("int64")
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation="",
            inputs_description=_INPUTS,
            features=datasets.Features({"predictions": label, "references": label}),
        )

    def _compute(self, predictions: Sequence[int], references: Sequence[int]) -> dict[str, float]:
        return {self.config_name: SCORES[self.config_name](table(predictions, references))}
