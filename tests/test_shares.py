"""The shares of what results vary by: trainings that differ in one seed."""

from __future__ import annotations

import pytest

from harness.documented_run.recipe import Recipe
from harness.documented_run.stages import STAGES, Run
from harness.documented_run.stages.measures.losses import FACTORS
from scripts.shares import results


@pytest.fixture(scope="module")
def made(small: Recipe) -> Run:
    """A run up to its model, with one short epoch."""
    run = Run(small.with_(epochs=1))
    for stage in STAGES[: [stage.name for stage in STAGES].index("model") + 1]:
        stage.do(run)
    return run


@pytest.mark.parametrize(
    "factor", [FACTORS[0], *(pytest.param(each, marks=pytest.mark.nightly) for each in FACTORS[1:])]
)
def test_another_seed_for_one_factor_gives_another_result(factor: str, made: Run) -> None:
    first, second = results(made, (factor,), 2)
    assert first["loss"] != second["loss"]
    assert [first] == list(results(made, (), 1)), "the first seed is that of the others"
