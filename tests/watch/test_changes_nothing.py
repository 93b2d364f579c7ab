"""A script that is watched prints, writes and draws what it does alone.

The watch never gives a script's own object to a second call, and never draws from its data or its random states. Each
script runs twice alone, which tells what of it is the same in two runs, and once watched.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.checks.corpus import needs_of
from tests.programs import versions_of
from tests.server import server_of
from tests.versions import installed
from tests.watch.outcome import DRAWS

TESTS = Path(__file__).parents[1]
CORPORA = Path(os.environ.get("HARNESS_CORPORA") or "absent")
LIMIT = 240
MEASURED = re.compile(r"\d ?(MB|MiB|ms|s)\b|mb=|it/s", re.IGNORECASE)
"""What lines have that differ from run to run: memory and time."""
TIMES = re.compile(rb"(_(?:runtime|per_second)[\"']: *)[\"']?[\d.e+-]+[\"']?")
"""What the Trainer says of time, in what it prints and in the state that it saves: rounded, so often the same twice."""
GUARDS = ("vqvae_patches",)


def scripts() -> Iterator[Any]:
    """The right programs of one process of SilentTrain, and probes where they are there."""
    for part in ("kinds", "saved", "forum", "llm"):
        for each in versions_of(part):
            if each.kind == "right" and each.program.processes == 1:
                mark = pytest.mark.slow if each.file.stem in GUARDS else pytest.mark.nightly
                yield pytest.param(each.path, each.program.needs, id=f"{part}-{each.file.stem}", marks=mark)
    for script in sorted(CORPORA.glob("probes/*.py")):
        yield pytest.param(script, (), id=f"probes-{script.stem}", marks=pytest.mark.nightly)


def outcome(script: Path, folder: Path, how: str, config: pytest.Config) -> dict[str, str]:
    """What it prints, line by line, its files as digests, and its random states."""
    folder.mkdir()
    (folder / script.name).write_text(script.read_text(encoding="utf-8"), encoding="utf-8")
    done = server_of(config).run(folder, how, script.name, program="tests.watch.outcome", limit=LIMIT)
    found = {
        f"line {number}": TIMES.sub(rb"\1", line.encode()).decode()
        for number, line in enumerate(done.stdout.splitlines())
        if not MEASURED.search(line)
    }
    for file in sorted(folder.rglob("*")):
        if file.is_file() and "__pycache__" not in file.parts:
            found[str(file.relative_to(folder))] = hashlib.sha256(TIMES.sub(rb"\1", file.read_bytes())).hexdigest()
    return found | {"status": str(done.status)}


@pytest.mark.parametrize(("script", "needs"), list(scripts()))
def test_a_watched_script_does_what_it_does_alone(
    script: Path, needs: tuple[str, ...], tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    for needed in (*needs, *needs_of(script.read_text(encoding="utf-8"))):
        if not installed(needed):
            pytest.skip(f"needs {needed}, of the extra styles")
    alone, again = (outcome(script, tmp_path / each, "plain", pytestconfig) for each in ("alone", "again"))
    watched = outcome(script, tmp_path / "watched", "watched", pytestconfig)
    assert (alone["status"], again["status"]) == ("0", "0")
    assert DRAWS in alone
    assert watched.keys() == alone.keys()
    same = {name for name in alone if again.get(name) == alone[name]}
    assert {name: (watched[name], alone[name]) for name in same if watched[name] != alone[name]} == {}
