"""``harness resume`` on scripts of several styles: each right one survives, each bug is named by what it loses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness import catalogue
from tests.resume.forked import CORPUS, scripts
from tests.rings import first_of_each
from tests.server import server_of

SCRIPTS = {entry["file"]: entry for entry in scripts()}

QUICK = "right/epoch_checkpoints.py"
OF_LIBRARIES = ("accelerate", "ddp", "trainer")
"""What the names of scripts begin with that take longer."""
GUARDS = first_of_each(
    sorted(SCRIPTS, key=lambda file: (file != QUICK, Path(file).name.startswith(OF_LIBRARIES))),
    kind=lambda file: SCRIPTS[file]["expected"],
)
"""One script for each loss, and a right one; the others are nightly."""


def found_in(file: str, tmp_path: Path, config: pytest.Config) -> dict[str, Any]:
    done = server_of(config).run(tmp_path, file, program="tests.resume.forked", limit=600)
    assert done.status == 0, done.stderr
    (line,) = done.stdout.splitlines()
    found: dict[str, Any] = json.loads(line)
    return found


def check(entry: dict[str, Any], found: dict[str, Any]) -> None:
    """Whether exactly what is expected was said, with what follows from it, and by the kills that show it."""
    expected = [(entry["expected"], None)] if entry["expected"] else []
    expected += [(each, entry["expected"]) for each in entry.get("also", ())]
    assert [(finding["check"], finding["explained_by"]) for finding in found["findings"]] == expected, found
    assert "error" not in found, found
    kills = [kill["kind"] for kill in found["kills"]]
    assert kills[:2] == ["in an epoch", "during a save"]
    # Where something was lost in the save alone, the script is killed right before it too.
    assert kills[2:] in ([], ["after an update"])
    assert bool(kills[2:]) or entry["expected"] != "resume::checkpoint-torn"
    for finding in found["findings"]:
        file, line = finding["where"].rsplit(":", 1)
        assert Path(entry["file"]).name == file
        assert 1 <= int(line) <= len((CORPUS / entry["file"]).read_text().splitlines())


def test_the_manifest_names_every_script_and_every_loss() -> None:
    assert set(SCRIPTS) == {str(path.relative_to(CORPUS)) for path in CORPUS.glob("*/*.py")}
    assert {entry["expected"] for entry in SCRIPTS.values()} == {"", *catalogue.losses()}
    for file, entry in SCRIPTS.items():
        assert file.partition("/")[0] == (entry["expected"].removeprefix("resume::") or "right")


def marks(file: str) -> tuple[pytest.MarkDecorator, ...]:
    several = SCRIPTS[file].get("processes", 1) > 1
    ring = pytest.mark.slow if file in GUARDS else pytest.mark.nightly
    return (ring,) * (file != QUICK) + (pytest.mark.distributed,) * several


@pytest.mark.parametrize("file", [pytest.param(file, marks=marks(file)) for file in SCRIPTS])
def test_corpus(file: str, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    found = found_in(file, tmp_path, pytestconfig)
    check(SCRIPTS[file], found)
    if file == QUICK:
        assert [kill["resumed_from"] is None for kill in found["kills"]] == [False, False]
