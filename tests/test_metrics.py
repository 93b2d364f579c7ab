"""The package's metric equals scikit-learn's, whatever is predicted and however it is split into batches."""

from __future__ import annotations

import warnings
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from evaluate import EvaluationModule
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, f1_score, matthews_corrcoef

from harness.documented_run.metrics import load_metric, scores_of
from harness.documented_run.recipe import DOCUMENTED_METRICS, METRICS, RECIPES
from harness.documented_run.run import run_recipe
from harness.documented_run.stages.evaluate import FORMULAS, score
from harness.errors import CannotTry

LABELS = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1)), min_size=1, max_size=60)


@pytest.fixture(scope="module")
def metric() -> EvaluationModule:
    return load_metric()


def expected(pairs: list[tuple[int, int]]) -> dict[str, float]:
    predictions, references = zip(*pairs, strict=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scikit-learn warns where nothing is positive, and gives 0
        f1 = f1_score(references, predictions)
    return {"accuracy": accuracy_score(references, predictions), "f1": f1}


@given(pairs=LABELS, size=st.integers(1, 20))
@settings(deadline=None, max_examples=60)
def test_equals_scikit_learn_in_any_batches(metric: EvaluationModule, pairs: list[tuple[int, int]], size: int) -> None:
    for start in range(0, len(pairs), size):
        predictions, references = zip(*pairs[start : start + size], strict=True)
        metric.add_batch(predictions=predictions, references=references)
    assert metric.compute() == pytest.approx(expected(pairs), rel=1e-12)


@pytest.mark.parametrize("pairs", [[(0, 0)] * 3, [(0, 1)] * 3, [(1, 0)] * 3, [(1, 1)] * 3])
def test_one_class_only(metric: EvaluationModule, pairs: list[tuple[int, int]]) -> None:
    predictions, references = zip(*pairs, strict=True)
    assert metric.compute(predictions=predictions, references=references) == expected(pairs)


def test_documented_figures_are_whole_rows(metric: EvaluationModule) -> None:
    """344 of 408 right with 261 of 279 positives found give the documented accuracy and F1."""
    pairs = [(1, 1)] * 261 + [(0, 1)] * 18 + [(1, 0)] * 46 + [(0, 0)] * 83
    predictions, references = zip(*pairs, strict=True)
    scores = metric.compute(predictions=predictions, references=references)
    assert scores == pytest.approx({"accuracy": 0.8431372549019608, "f1": 0.8907849829351535}, rel=1e-15)


MANY = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=60)
"""Predictions and references of five classes, of which some may not occur."""

DEFINED = {
    "accuracy": accuracy_score,
    "f1_macro": partial(f1_score, average="macro"),
    "f1_micro": partial(f1_score, average="micro"),
    "f1_weighted": partial(f1_score, average="weighted"),
    "matthews_correlation": matthews_corrcoef,
}


def defined(pairs: list[tuple[int, int]]) -> dict[str, float]:
    predictions, references = zip(*pairs, strict=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {name: float(score(references, predictions)) for name, score in DEFINED.items()}


@pytest.fixture(scope="module")
def all_of_them() -> Any:
    return load_metric(tuple(DEFINED))


@given(pairs=MANY, size=st.integers(1, 20))
@settings(deadline=None, max_examples=20)
def test_many_classes_equal_scikit_learn(all_of_them: Any, pairs: list[tuple[int, int]], size: int) -> None:
    for start in range(0, len(pairs), size):
        predictions, references = zip(*pairs[start : start + size], strict=True)
        all_of_them.add_batch(predictions=predictions, references=references)
    assert all_of_them.compute() == pytest.approx(defined(pairs), rel=1e-12, abs=1e-12)


@given(pairs=MANY)
@settings(deadline=None, max_examples=60)
def test_by_hand_is_scikit_learns_too(pairs: list[tuple[int, int]]) -> None:
    """What the check compares with shares no code with the metric."""
    predictions, references = zip(*pairs, strict=True)
    found = {name: score(name, predictions, references) for name in DEFINED}
    assert found == pytest.approx(defined(pairs), rel=1e-12, abs=1e-12)


@given(pairs=LABELS)
@settings(deadline=None, max_examples=100)
def test_binary_f1_by_hand(pairs: list[tuple[int, int]]) -> None:
    predictions, references = zip(*pairs, strict=True)
    found = {name: score(name, predictions, references) for name in DOCUMENTED_METRICS}
    assert found == pytest.approx(expected(pairs), rel=1e-12)


def test_every_name_can_be_measured_and_counted() -> None:
    loaded = load_metric(METRICS)
    assert tuple(loaded.compute(predictions=[0, 1], references=[0, 1])) == METRICS == tuple(FORMULAS)


OWN = '''
import datasets
import evaluate


class Cost(evaluate.Metric):
    """Two for a row of class 2 that is missed, one for another."""

    def _info(self):
        label = datasets.Value("int64")
        features = datasets.Features({"predictions": label, "references": label})
        return evaluate.MetricInfo(description="", citation="", inputs_description="", features=features)

    def _compute(self, predictions, references):
        pairs = zip(predictions, references)
        return {"NAME": VALUE}
'''
COST = OWN.replace("NAME", "cost").replace("VALUE", "float(sum((a != b) * (2 if b == 2 else 1) for a, b in pairs))")


def test_a_module_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "cost.py"
    path.write_text(COST)
    recipe = RECIPES["tiny-three"].with_(metrics=("accuracy", path))
    assert scores_of(recipe) == ("accuracy", "cost")
    metric = load_metric(recipe.metrics)
    for prediction, reference in ((0, 1), (1, 2), (2, 2), (0, 0)):
        metric.add_batch(predictions=[prediction], references=[reference])
    assert metric.compute() == {"accuracy": 0.5, "cost": 3.0}


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (None, r"metric module .*own\.py not found; name a Python file with a class of evaluate\.Metric"),
        ("x = 1\n", r"metric module .*own\.py could not be loaded \(.*; it must have a class of evaluate\.Metric"),
        ("import nowhere_to_be_found\n", r"could not be loaded \(ImportError: .*nowhere_to_be_found"),
        (OWN.replace("VALUE", "1 / 0"), r"fail at predictions and references \[0, 1, 2\] \(ZeroDivisionError"),
        (OWN.replace("VALUE", "[0.5, 0.5]"), r"give NAME as \[0\.5, 0\.5\] for predictions that are all right"),
        (OWN.replace("VALUE", "float('nan')"), "give NAME as nan for predictions that are all right"),
        (OWN.replace("NAME", "accuracy").replace("VALUE", "1.0"), "give accuracy too, which the recipe names"),
    ],
)
def test_modules_that_cannot_be_used(tmp_path: Path, source: str | None, message: str) -> None:
    """Known before the first stage, and never looked for elsewhere."""
    path = tmp_path / "own.py"
    if source:
        path.write_text(source)
    recipe = RECIPES["tiny-three"].with_(metrics=("accuracy", str(path)))
    with pytest.raises(CannotTry, match=message):
        run_recipe(recipe, until="load")
