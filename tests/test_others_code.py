"""``harness check`` on scripts that were written apart from it, where a folder of them is there (HARNESS_CORPORA)."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness import catalogue
from scripts.expectations import Case, Manifest
from scripts.scoreboard import HARNESS, Asker, judge
from tests.server import Verdict, server_of

pytestmark = pytest.mark.nightly

FOLDER = Path(os.environ.get("HARNESS_CORPORA") or "absent")
ONE_OF = 4
"""Scripts of a manifest of which one is run: all of them take a quarter of an hour."""

MIN_NAMED = 0.8
"""Least share of the bugs that are run, without those that are marked hard, which an error must name."""

LIMIT = 240


def in_part(name: str) -> Iterator[Case]:
    """Some cases of a manifest, those of one process."""
    if (FOLDER / name / "manifest.json").exists():
        for number, entry in enumerate(Manifest.read(FOLDER / name).root):
            if number % ONE_OF == 0:
                yield from (case for case in entry.cases(FOLDER / name) if case.processes == 1 and not case.marked)


@pytest.mark.parametrize("name", ["forum", "course"])
def test_bugs_are_named_and_right_scripts_are_not_flagged(name: str, pytestconfig: pytest.Config) -> None:
    cases = [(name, case) for case in in_part(name)]
    if not cases:
        pytest.skip("HARNESS_CORPORA names no folder with it")
    outcomes = list(judge(Asker(FOLDER, [server_of(pytestconfig)], LIMIT), [HARNESS], cases, jobs=1))
    assert [each.name for each in outcomes if each.verdict in ("false error", "broken")] == []
    bugs = [each for each in outcomes if each.kind == "bug"]
    named = [each for each in bugs if each.verdict in ("exact", "flagged")]
    assert len(named) >= MIN_NAMED * len(bugs), [each.name for each in bugs if each not in named]


def watched(script: Path, folder: Path, config: pytest.Config) -> Verdict:
    done = server_of(config).run(folder, "check", "--json", "found.json", str(script), limit=LIMIT)
    return Verdict.of(folder / "found.json", done)


@pytest.mark.parametrize("script", sorted(FOLDER.glob("real/minimal/*.py")), ids=lambda script: script.stem)
def test_what_was_once_called_wrong(script: Path, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    """The first line of each says what is expected: "clean", or "error" and a check's id, be it a former one."""
    found = watched(script, tmp_path, pytestconfig)
    errors = {each["check"] for each in found.findings if each["severity"] == "error"}
    expected = re.match(r"# expected: error (\S+)", script.read_text())
    assert found.crashed is None
    assert errors == (catalogue.resolve([expected[1]]) if expected else set())


@pytest.mark.parametrize("script", sorted(FOLDER.glob("hostile/s_x_*.py")), ids=lambda script: script.stem)
def test_unusual_training_is_not_flagged(script: Path, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    found = watched(script, tmp_path, pytestconfig)
    assert found.crashed is None
    assert [each["check"] for each in found.findings if each["severity"] == "error"] == []
