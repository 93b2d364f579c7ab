"""Accuracy and F1 of binary labels, as a module of Hugging Face Evaluate."""

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


def accuracy_and_f1(predictions, references):  # type: ignore[no-untyped-def]
    """Both scores of two sequences of labels of one length, as fractions.

    >>> accuracy_and_f1([1, 0, 1, 1], [1, 0, 0, 1])
    {'accuracy': 0.75, 'f1': 0.8}
    """
    predictions, references = np.asarray(predictions), np.asarray(references)
    hits = int(((predictions == 1) & (references == 1)).sum())
    named = int((predictions == 1).sum()) + int((references == 1).sum())
    return {
        "accuracy": float((predictions == references).mean()),
        "f1": 2 * hits / named if named else 0.0,
    }


class AccuracyAndF1(evaluate.Metric):
    """What ``evaluate.load`` instantiates."""

    def _info(self):  # type: ignore[no-untyped-def]
        label = datasets.Value("int64")
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation="",
            inputs_description=_INPUTS,
            features=datasets.Features({"predictions": label, "references": label}),
        )

    def _compute(self, predictions, references):  # type: ignore[no-untyped-def]
        return accuracy_and_f1(predictions, references)
