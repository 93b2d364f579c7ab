"""The metrics that a recipe can name, counted on their own: the metric's code must not vouch for itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from statistics import fmean

import numpy as np

Pairs = Counter[tuple[int, int]]
"""How often each predicted label met each true one."""


def accuracy(pairs: Pairs) -> float:
    return sum(rows for (predicted, true), rows in pairs.items() if predicted == true) / max(1, pairs.total())


def counted(pairs: Pairs, label: int) -> tuple[int, int, int]:
    """The rows of a label that were found, that were missed, and those that were wrongly taken for it."""
    found = pairs[label, label]
    missed = sum(rows for (predicted, true), rows in pairs.items() if true == label != predicted)
    wrongly = sum(rows for (predicted, true), rows in pairs.items() if predicted == label != true)
    return found, missed, wrongly


def f1_from(found: int, missed: int, wrongly: int) -> float:
    """The harmonic mean of precision and recall; 0 where nothing was found."""
    precision, recall = (found / max(1, found + others) for others in (wrongly, missed))
    return 2 * precision * recall / (precision + recall) if found else 0.0


def f1(pairs: Pairs, label: int = 1) -> float:
    return f1_from(*counted(pairs, label))


def f1_macro(pairs: Pairs) -> float:
    labels = {label for pair in pairs for label in pair}
    return fmean(f1(pairs, label) for label in labels) if labels else 0.0


def f1_weighted(pairs: Pairs) -> float:
    return sum(rows * f1(pairs, true) for (_, true), rows in pairs.items()) / max(1, pairs.total())


def f1_micro(pairs: Pairs) -> float:
    """Of the counts of all labels together."""
    each = [counted(pairs, label) for label in {label for pair in pairs for label in pair}]
    found, missed, wrongly = (sum(counts[place] for counts in each) for place in range(3))
    return f1_from(found, missed, wrongly)


def matthews_correlation(pairs: Pairs) -> float:
    """The correlation of predicted and true labels, each as a column of zeros and ones; 0 where one is constant."""
    labels = sorted({label for pair in pairs for label in pair})
    rows = np.array(list(pairs.elements())).reshape(-1, 2)
    predicted, true = (rows[:, [side]] == np.array(labels) for side in (0, 1))
    predicted, true = predicted - predicted.mean(axis=0), true - true.mean(axis=0)
    spread = (predicted**2).sum() * (true**2).sum()
    return float((predicted * true).sum() / np.sqrt(spread)) if spread else 0.0


SCORES: dict[str, Callable[[Pairs], float]] = {
    "accuracy": accuracy,
    "f1": f1,
    "f1_macro": f1_macro,
    "f1_micro": f1_micro,
    "f1_weighted": f1_weighted,
    "matthews_correlation": matthews_correlation,
}


def score(name: str, predictions: Sequence[int], references: Sequence[int]) -> float:
    """One of the named metrics of as many rows as both sequences have.

    >>> score("f1_macro", [0, 1, 2, 2], [0, 1, 1, 2])
    0.7777777777777777
    """
    return SCORES[name](Counter(zip(predictions, references, strict=False)))
