"""Accuracy and F1 of binary labels, as a module of Hugging Face Evaluate."""

from collections.abc import Sequence
from typing import Any

import datasets
import evaluate
import numpy as np

_DESCRIPTION = "Accuracy, and the F1 score of label 1, as GLUE reports them for MRPC."
_INPUTS = """
Args:
    predictions: predicted labels, 0 or 1.
    references: true labels, 0 or 1.
Returns:
    accuracy: the share of equal labels.
    f1: the harmonic mean of precision and recall of label 1; 0.0 where no row is or was predicted to be 1.
"""


def accuracy_and_f1(predictions: Sequence[int], references: Sequence[int]) -> dict[str, float]:
    """Both scores of two sequences of labels of one length, as fractions.

    >>> accuracy_and_f1([1, 0, 1, 1], [1, 0, 0, 1])
    {'accuracy': 0.75, 'f1': 0.8}
    """
    predicted, true = np.asarray(predictions), np.asarray(references)
    hits = int(((predicted == 1) & (true == 1)).sum())
    named = int((predicted == 1).sum()) + int((true == 1).sum())
    return {
        "accuracy": float((predicted == true).mean()),
        "f1": 2 * hits / named if named else 0.0,
    }


class AccuracyAndF1(evaluate.Metric):
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
        return accuracy_and_f1(predictions, references)
