"""``harness check`` on scripts that were written apart from it, where a folder of them is there (HARNESS_CORPORA)."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from harness import catalogue
from tests.server import Verdict, server_of

pytestmark = pytest.mark.nightly

FOLDER = Path(os.environ.get("HARNESS_CORPORA") or "absent")
LIMIT = 240


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
