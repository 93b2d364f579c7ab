"""Metrics for ``evaluate.load`` that need no hub."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness.documented_run.recipe import DOCUMENTED_METRICS, Recipe, is_module
from harness.errors import CannotTry

MODULE = Path(__file__).parent / "accuracy_and_f1.py"
SCORES = Path(__file__).parent / "scores.py"

RANGES = {"matthews_correlation": (-1.0, 1.0)}
"""Ranges of the metrics of this package that are no fractions."""


def load_metric(metrics: Sequence[str] = DOCUMENTED_METRICS) -> Any:
    """GLUE MRPC's metric, accuracy and F1, through ``evaluate.load``; or the metrics that a recipe names, as one.

    The document's ``evaluate.load("glue", "mrpc")`` fetches code from the hub at every fresh start; this loads a module
    with the same interface from the package. Values are kept in memory, so runs at the same time share no cache file.

    Raises:
        CannotTry: a module of the user's own is not there or cannot be loaded. None is looked for on the hub.
    """
    import evaluate

    if tuple(metrics) == DOCUMENTED_METRICS:
        return evaluate.load(str(MODULE), keep_in_memory=True)
    loaded = [
        _own(metric) if is_module(metric) else evaluate.load(str(SCORES), metric, keep_in_memory=True)
        for metric in metrics
    ]
    return loaded[0] if len(loaded) == 1 else evaluate.combine(loaded)


def _own(metric: str) -> Any:
    import evaluate

    path = Path(metric)
    if not path.is_file():
        raise CannotTry(
            f"metric module {metric} not found; name a Python file with a class of evaluate.Metric in the recipe's "
            "metrics"
        )
    try:
        return evaluate.load(str(path.absolute()), keep_in_memory=True)
    except Exception as error:
        raise CannotTry(
            f"metric module {metric} could not be loaded ({type(error).__name__}: {error}); it must have a class of "
            "evaluate.Metric"
        ) from error


def scores_of(recipe: Recipe) -> tuple[str, ...]:
    """What the recipe's metrics call their scores, which for modules of the user's own takes a trial.

    Raises:
        CannotTry: a module of the user's own cannot be loaded, fails at the recipe's labels, or gives something else
            than numbers.
    """
    if not (own := [metric for metric in recipe.metrics if is_module(metric)]):
        return recipe.metrics
    labels = list(range(recipe.num_labels))
    try:
        scores = load_metric(recipe.metrics).compute(predictions=labels, references=labels)
    except CannotTry:
        raise
    except Exception as error:
        raise CannotTry(
            f"the metrics {', '.join(own)} fail at predictions and references {labels} ({type(error).__name__}: "
            f"{error}); give defaults that fit {recipe.num_labels} labels"
        ) from error
    if twice := [metric for metric in recipe.metrics if metric not in own and metric not in (scores or {})]:
        raise CannotTry(
            f"the metrics {', '.join(own)} give {', '.join(twice)} too, which the recipe names; leave one of both out"
        )
    for name, score in (scores or {"nothing": None}).items():
        if not isinstance(score, float) or not math.isfinite(score):
            raise CannotTry(
                f"the metrics {', '.join(own)} give {name} as {score!r} for predictions that are all right; expected "
                "one finite number for each name, a Python float"
            )
    return tuple(scores)
