"""Ten runs say what they said: ``python -m tests.golden.runs`` writes them anew, and the difference is looked at."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.checks.conftest import foreign
from tests.golden.runs import CHECKED, FOLDER, RUNS, golden
from tests.server import server_of


@pytest.mark.parametrize(
    "name", ["flat", *(pytest.param(name, marks=pytest.mark.slow) for name in [*CHECKED, *RUNS] if name != "flat")]
)
def test_a_run_says_what_it_said(name: str, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    if foreign():
        pytest.skip("recorded with other versions")
    kept = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    found = golden(name, tmp_path, server_of(pytestconfig))
    if kept["json"] and "loss" in kept["json"]:
        kept["json"]["loss"] = pytest.approx(kept["json"]["loss"], rel=1e-2)
    assert found["terminal"] == kept["terminal"]
    assert found == kept
