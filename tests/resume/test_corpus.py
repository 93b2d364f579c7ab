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

SCRIPTS = scripts()


def expected_of(file: str) -> str:
    """The loss that a script is about: the name of its folder; none for a right one."""
    folder = file.partition("/")[0]
    return "" if folder == "right" else f"resume::{folder}"


QUICK = "right/epoch_checkpoints.py"
OF_LIBRARIES = ("accelerate", "ddp", "trainer")
"""What the names of scripts begin with that take longer."""
GUARDS = first_of_each(
    sorted(SCRIPTS, key=lambda file: (file != QUICK, Path(file).name.startswith(OF_LIBRARIES))),
    kind=expected_of,
)
"""One script for each loss, and a right one; the others are nightly."""


def found_in(file: str, tmp_path: Path, config: pytest.Config) -> dict[str, Any]:
    done = server_of(config).run(tmp_path, file, program="tests.resume.forked", limit=600)
    assert done.status == 0, done.stderr
    (line,) = done.stdout.splitlines()
    found: dict[str, Any] = json.loads(line)
    return found


def check(file: str, found: dict[str, Any]) -> None:
    """Whether exactly what is expected was said, with what follows from it, and by the kills that show it."""
    loss, follows = expected_of(file), (SCRIPTS[file].model_extra or {}).get("follows", ())
    expected: list[tuple[str, str | None]] = [(loss, None)] if loss else []
    expected += [(each, loss) for each in follows]
    assert [(finding["check"], finding["explained_by"]) for finding in found["findings"]] == expected, found
    assert "error" not in found, found
    kills = [kill["kind"] for kill in found["kills"]]
    assert kills[:2] == ["in an epoch", "during a save"]
    # Where something was lost in the save alone, the script is killed right before it too.
    assert kills[2:] in ([], ["after an update"])
    assert bool(kills[2:]) or loss != "resume::checkpoint-torn"
    for finding in found["findings"]:
        name, line = finding["where"].rsplit(":", 1)
        assert Path(file).name == name
        assert 1 <= int(line) <= len((CORPUS / file).read_text().splitlines())


def test_the_manifest_names_every_script_and_every_loss() -> None:
    assert set(SCRIPTS) == {str(path.relative_to(CORPUS)) for path in CORPUS.glob("*/*.py")}
    assert {expected_of(file) for file in SCRIPTS} == {"", *catalogue.losses()}
    for file, program in SCRIPTS.items():
        assert program.says == ([f"(^| ){expected_of(file)}[ :]"] if program.bug else [])


def marks(file: str) -> tuple[pytest.MarkDecorator, ...]:
    several = SCRIPTS[file].processes > 1
    ring = pytest.mark.slow if file in GUARDS else pytest.mark.nightly
    return (ring,) * (file != QUICK) + (pytest.mark.distributed,) * several


@pytest.mark.parametrize("file", [pytest.param(file, marks=marks(file)) for file in SCRIPTS])
def test_corpus(file: str, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    found = found_in(file, tmp_path, pytestconfig)
    check(file, found)
    if file == QUICK:
        assert [kill["resumed_from"] is None for kill in found["kills"]] == [False, False]
