"""The corpus of ``harness check`` in windows: right scripts raise no alarm, and each check that looks finds its bug."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from harness.watch.windows import judging
from tests.checks.corpus import Case, all_cases
from tests.rings import first_of_each
from tests.server import CHECKPOINT, server_of

SCRIPTS = [case for case in all_cases() if case.kind == "as it is"]
EXAMPLES = [case for case in all_cases() if case.kind in ("bad", "good") and case.check in judging("first", "all")]
BUGS = [case for case in EXAMPLES if case.kind == "bad"]
RIGHT = [*SCRIPTS, *(case for case in EXAMPLES if case.kind == "good")]
GUARDS = first_of_each((str(case.check) for case in EXAMPLES), kind=lambda check: check.partition("::")[0])
"""A check of each family, whose examples guard every change; the others are nightly."""


def parameters(cases: Sequence[Case]) -> list[Any]:
    marks = {True: pytest.mark.slow, False: pytest.mark.nightly}
    return [pytest.param(case, id=f"{case.check}-{case.name}", marks=marks[case.check in GUARDS]) for case in cases]


def found_in(case: Case, which: str, folder: Path, config: pytest.Config) -> dict[str, Any]:
    if case.needed:
        pytest.skip(f"needs {' or '.join(case.needed)}")
    (folder / case.script).write_text(case.text, encoding="utf-8")
    server = server_of(config)
    program = "tests.callbacks.scripts_in_windows"
    done = server.run(folder, "found.json", which, case.script, str(server.data), str(CHECKPOINT), program=program)
    assert (folder / "found.json").exists(), done.stderr
    assert "harness stops watching this run" not in done.stderr
    assert "harness watches this run without" not in done.stderr
    found: dict[str, Any] = json.loads((folder / "found.json").read_text(encoding="utf-8"))
    assert found["crashed"] is None
    assert found["windows"] > 0
    return found


@pytest.mark.parametrize("which", ["first", pytest.param("later", marks=pytest.mark.nightly)])
@pytest.mark.parametrize("case", parameters(RIGHT))
def test_a_right_script_raises_no_alarm(case: Case, which: str, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    assert found_in(case, which, tmp_path, pytestconfig)["told"] == []


@pytest.mark.parametrize("case", parameters(BUGS))
def test_a_check_that_looks_finds_its_bug(case: Case, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    told = found_in(case, "first", tmp_path, pytestconfig)["told"]
    assert [finding["check"] for finding in told if finding["explained_by"] is None] == [case.check]
    beside = judging("first", "all").intersection(case.also)  # the others need the end of the run
    assert {finding["check"] for finding in told} == {case.check, *beside}


def test_each_check_that_looks_has_a_bug() -> None:
    assert {case.check for case in BUGS} == judging("first", "all")
