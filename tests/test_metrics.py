"""The package's metric equals scikit-learn's, whatever is predicted and however it is split into batches."""

from __future__ import annotations

import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, f1_score

from harness.metrics import load_metric

LABELS = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1)), min_size=1, max_size=60)


@pytest.fixture(scope="module")
def metric():
    return load_metric()


def expected(pairs: list[tuple[int, int]]) -> dict[str, float]:
    predictions, references = zip(*pairs, strict=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scikit-learn warns where nothing is positive, and gives 0
        f1 = f1_score(references, predictions)
    return {"accuracy": accuracy_score(references, predictions), "f1": f1}


@given(pairs=LABELS, size=st.integers(1, 20))
@settings(deadline=None, max_examples=60)
def test_equals_scikit_learn_in_any_batches(metric, pairs: list[tuple[int, int]], size: int) -> None:
    for start in range(0, len(pairs), size):
        predictions, references = zip(*pairs[start : start + size], strict=True)
        metric.add_batch(predictions=predictions, references=references)
    assert metric.compute() == pytest.approx(expected(pairs), rel=1e-12)


@pytest.mark.parametrize("pairs", [[(0, 0)] * 3, [(0, 1)] * 3, [(1, 0)] * 3, [(1, 1)] * 3])
def test_one_class_only(metric, pairs: list[tuple[int, int]]) -> None:
    predictions, references = zip(*pairs, strict=True)
    assert metric.compute(predictions=predictions, references=references) == expected(pairs)


def test_documented_figures_are_whole_rows(metric) -> None:
    """344 of 408 right with 261 of 279 positives found give the documented accuracy and F1."""
    pairs = [(1, 1)] * 261 + [(0, 1)] * 18 + [(1, 0)] * 46 + [(0, 0)] * 83
    predictions, references = zip(*pairs, strict=True)
    scores = metric.compute(predictions=predictions, references=references)
    assert scores == pytest.approx({"accuracy": 0.8431372549019608, "f1": 0.8907849829351535}, rel=1e-15)
