"""The baselines in the repository: in force, recorded from clean commits, and as many seeds as are promised."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.documented_run.baseline.review import stale, stored_files
from harness.documented_run.baseline.stored import Baseline
from harness.documented_run.stages import CLAIMS
from scripts.same_results import loops_of, same_results, same_results_lines

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "baselines"
SEEDS = {
    "tiny-plain-cpu": 20,
    "tiny-trainer-cpu": 5,
    "tiny-accelerate-cpu": 5,
    "minilm-plain-cpu": 5,
    "minilm-plain-nvidia-h200": 3,
}
"""How many seeds each was recorded with, at least."""


def test_none_is_stale_and_none_is_unknown() -> None:
    assert stale(FOLDER) == {}
    assert {path.stem for path in stored_files(FOLDER)} == {*SEEDS}


@pytest.mark.parametrize("name", SEEDS)
def test_seeds(name: str) -> None:
    baseline = Baseline.read(FOLDER / f"{name}.json")
    assert len(baseline.runs) >= SEEDS[name]
    assert all(run.commit and run.dirty is False for run in baseline.runs)
    assert not any("/" in run.command for run in baseline.runs), "no path of a machine"
    assert baseline.reason


@pytest.mark.slow
def test_the_loops_results_are_the_same() -> None:
    """As docs/baselines.md says: all pairs are equivalent, and no pair's seeds are too few for the margin."""
    (loops,) = loops_of(FOLDER)
    found = same_results(loops)
    assert {each.name for each in loops} == {name for name in SEEDS if name.startswith("tiny")}
    assert found.outcome == "equivalent within the margin"
    assert all(pair.equivalence.smallest_margin() < pair.equivalence.margin for pair in found.pairs)
    printed = "\n".join(f"    {line}".rstrip() for line in same_results_lines(found))
    assert printed in (ROOT / "docs" / "baselines.md").read_text()


def test_the_documents_figures_are_the_claims() -> None:
    """As values where a check compares with them, else as the claim's sentence has them."""
    stored = json.loads((FOLDER / "documented.json").read_text())
    assert stored | {"documented": []} == {
        "schema": 1,
        "use": "ball park only: single runs without a seed",
        "documented": [],
    }
    ball_park = [claim for claim in CLAIMS.values() if claim.kind == "ball park"]
    for claim, figures in zip(ball_park, stored["documented"], strict=True):
        assert (figures["claim"], figures["section"]) == (claim.id, claim.section)
        assert tuple(figures["documents"]) == claim.documents
        assert figures["figures"]
        if claim.expected:
            assert figures["figures"] == claim.expected
        else:
            assert all(f"{value}" in claim.sentence for value in figures["figures"].values())
