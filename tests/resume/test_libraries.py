"""The saves of libraries, gone through at every file operation; docs/faults.md has what other versions do."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.server import server_of

LIBRARIES = Path(__file__).parent / "libraries"


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("script", "says"),
    [("ignited.py", "{0} of {0} kills survived bit for bit"), ("trainer.py", "error: resume::checkpoint-torn")],
)
def test_a_library_at_every_event(script: str, says: str, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / script).write_text((LIBRARIES / script).read_text())
    command = ("--command", "resume", "--every-event", script)
    caches = {"XDG_CACHE_HOME": str(tmp_path / "caches")}
    done = server_of(pytestconfig).run(
        tmp_path / "work", *command, program="tests.resume.forked", environment=caches, limit=600
    )
    kills = len(re.findall(r"^killed ", done.stderr, re.MULTILINE))
    assert kills > 5, done.stderr
    assert says.format(kills) in done.stderr
