"""Every mutant is caught by its check, in a line of its script; no variant is flagged; the record says so."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from harness.watch.invariants import STATEMENTS
from tests.mutants.loops.corpus import (
    MUTANTS,
    NEEDS,
    SCRIPTS,
    UNSEEN,
    VARIANTS,
    LoopMutant,
    Unseen,
    Variant,
    applies,
)
from tests.mutants.loops.detect import CASES, DETECTION, README, ROOT, Verdict, matrix_lines, recorded
from tests.versions import installed

BY_RANKS = {"ranks::as-many-as-asked", "ranks::rows-of-its-own", "ranks::same-weights"}
"""Shown with several processes (tests/watch/test_ranks.py)."""


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Verdict]:
    file = tmp_path_factory.mktemp("detection") / "found.json"
    command = [sys.executable, "-m", "tests.mutants.loops.detect", "--json", str(file)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return {each["name"]: Verdict(**each) for each in json.loads(file.read_text())}


def _needs(script: str, on: tuple[str, ...] = ()) -> None:
    """Skip a case that is about other versions."""
    for wanted in (NEEDS.get(script, ()), on):
        if not installed(*wanted):
            pytest.skip(f"needs {' or '.join(wanted)}")


def faults(verdict: Verdict) -> list[str]:
    """Checks that failed themselves; other notes say what cannot be decided."""
    return [note for note in verdict.notes if "failed themselves" in note]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_is_caught_by_its_check_and_by_no_other(mutant: LoopMutant, verdicts: dict[str, Verdict]) -> None:
    verdict = verdicts[mutant.name]
    if not installed(*mutant.on):
        assert verdict.findings == [], "on these versions it is no bug"
        return
    _needs(mutant.script)
    assert verdict.crashed is None
    assert faults(verdict) == []
    assert [finding["check"] for finding in verdict.findings] == [mutant.check]
    assert all(finding["where"].startswith(f"{mutant.script}:") for finding in verdict.findings)


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)
def test_a_variant_is_not_flagged(variant: Variant, verdicts: dict[str, Verdict]) -> None:
    _needs(variant.script, variant.on)
    verdict = verdicts[variant.name]
    assert verdict.crashed is None
    assert faults(verdict) == []
    assert tuple(finding["check"] for finding in verdict.findings) == variant.warns
    assert all(STATEMENTS[check].severity == "warning" for check in variant.warns)


@pytest.mark.parametrize("script", sorted(SCRIPTS.glob("*.py")), ids=lambda script: script.stem)
def test_a_script_as_it_is_is_not_flagged(script: Path, verdicts: dict[str, Verdict]) -> None:
    _needs(script.name)
    assert verdicts[script.stem].crashed is None
    assert verdicts[script.stem].findings == []


@pytest.mark.parametrize("unseen", UNSEEN, ids=lambda unseen: unseen.name)
def test_what_is_not_seen_is_not_taken_for_something_else(unseen: Unseen, verdicts: dict[str, Verdict]) -> None:
    """When this fails, a check has learned to see it: move it to the mutants."""
    assert verdicts[unseen.name].findings == []


def test_every_check_has_a_mutant() -> None:
    counts = Counter(mutant.check for mutant in MUTANTS)
    assert set(STATEMENTS) - BY_RANKS == set(counts)


def test_the_corpus_is_as_large_as_promised() -> None:
    assert len(MUTANTS) >= 70
    assert len(VARIANTS) >= 45
    assert len({case.name for case in (*MUTANTS, *VARIANTS, *UNSEEN)}) == len(MUTANTS) + len(VARIANTS) + len(UNSEEN)


def test_what_is_recorded_is_what_is_found(verdicts: dict[str, Verdict]) -> None:
    """``python -m tests.mutants.loops.detect`` writes baselines/detection.json and README's matrix anew."""
    if not all(applies(case) for case in CASES):
        pytest.skip("recorded with other versions")
    kept = json.loads(DETECTION.read_text())
    found = recorded(list(verdicts.values()))
    for document in (kept, found):
        for entry in (*document["mutants"], *document["variants"], *document["unseen"]):
            del entry["seconds"]
    assert kept == found


def test_the_readme_shows_the_matrix() -> None:
    lines = "\n".join(matrix_lines(json.loads(DETECTION.read_text())))
    assert lines in README.read_text(encoding="utf-8")
