"""Silent changes to a run show in the exact comparison, at the update at which they first act."""

from __future__ import annotations

import pytest

from harness.documented_run.baseline import stored
from harness.documented_run.baseline.stored import Baseline
from harness.documented_run.recipe import Recipe
from scripts.silent_changes import changed_run, verdicts


@pytest.fixture(scope="module")
def recorded(small: Recipe, tmp_path_factory: pytest.TempPathFactory) -> Baseline:
    folder = tmp_path_factory.mktemp("recorded")
    for seed in (42, 43):
        path = stored.add(folder, changed_run(small.with_(seed=seed), "nothing"))
    return Baseline.read(path)


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("learning rate a tenth", 1),
        *(
            pytest.param(*each, marks=pytest.mark.nightly)
            for each in [("learning rate 1 % off", 1), ("no scheduler", 2), ("frozen backbone", 2)]
        ),
        ("5 % label noise", None),
    ],
)
def test_the_exact_comparison_sees_it(small: Recipe, recorded: Baseline, name: str, first: int | None) -> None:
    """Learning rates are compared themselves, and the second is the first that a missing scheduler changes. The first
    update's loss is of the untouched model, unless its labels are others."""
    exact = verdicts(recorded, [changed_run(small, name)])[0]
    assert exact.outcome == "fails"
    (finding,) = exact.findings
    assert finding.update is not None
    assert first in (None, finding.update)


def test_the_exact_comparison_sees_nothing_in_a_clean_run(small: Recipe, recorded: Baseline) -> None:
    exact = verdicts(recorded, [changed_run(small, "nothing")])[0]
    assert exact.outcome == "holds", exact.findings
