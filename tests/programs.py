"""The programs of SilentTrain (tests/silenttrain), as tests run them: docs/sets.md describes the set.

What ``harness check`` finds in each of them is recorded in baselines/others, a file a part.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from scripts.expectations import Manifest, Program
from tests.checks.corpus import Kind
from tests.server import Server, Verdict, run_python

SET = Path(__file__).parent / "silenttrain"
RECORDS = Path(__file__).parents[1] / "baselines" / "others"
LIMIT = 240
"""Seconds after which a program is ended."""

PARTS = ("course", "forum", "kinds", "llm", "processes", "reports", "saved")
"""The parts that ``harness check`` is about."""


@cache
def programs_of(part: str) -> list[Program]:
    return Manifest.read(SET / part / "manifest.toml").program


@dataclass(frozen=True)
class Version:
    """One version of a program, the one with the bug or the right one."""

    part: str
    program: Program
    kind: Kind
    file: Path
    """Below the part's folder."""

    @property
    def name(self) -> str:
        """Its name in the record."""
        both = self.program.bug is not None and self.kind == "right"
        return f"right/{self.program.id}" if both else self.program.id

    @property
    def path(self) -> Path:
        return SET / self.part / self.file

    @property
    def recorded(self) -> list[str]:
        """Severity and check of what ``harness check`` found in it, without what another finding explains."""
        found: list[str] = recorded_of(self.part)[self.name]
        return found


@cache
def recorded_of(part: str) -> dict[str, Any]:
    record = json.loads((RECORDS / f"{part}.json").read_text(encoding="utf-8"))
    return {each["name"]: each["found"] for each in record["outcomes"] if each["tool"] == "harness check"}


def versions_of(part: str) -> Iterator[Version]:
    for program in programs_of(part):
        if program.bug is not None:
            yield Version(part, program, "bug", program.bug)
        if program.right is not None:
            yield Version(part, program, "right", program.right)


def found_in(version: Version, server: Server) -> Verdict:
    """What ``harness check`` finds in it; one of several processes is started as a user starts it."""
    if version.program.processes > 1:
        return _in_processes(version.path, version.program.processes)
    with tempfile.TemporaryDirectory(dir=server.folder) as name:
        shutil.copy(version.path, name)
        words = ("check", "--json", "found.json", version.file.name, *version.program.arguments)
        return Verdict.of(Path(name, "found.json"), server.run(Path(name), *words, limit=LIMIT))


def _in_processes(file: Path, processes: int) -> Verdict:
    """What gloo does to a fork, or when a rank ends, is no matter of a script's."""
    with tempfile.TemporaryDirectory() as name:
        shutil.copy(file, name)
        found = Path(name) / "found.json"
        words = ("check", "--processes", str(processes), f"--json={found}", file.name)
        return Verdict.of(found, run_python(Path(name), "-m", "harness", *words))
