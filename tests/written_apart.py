"""Corpora of scripts with a bug, and of right ones that look as if they had one, written without sight of the checks.

A folder has ``bugs/``, ``right/`` and ``manifest.toml``, which says what is wrong in each script, what was measured of
it apart from the harness, and what must be found, in that order: ``found``; nothing in a right one. docs/check.md has
the figures of their first runs.
"""

from __future__ import annotations

import shutil
import tempfile
import tomllib
from collections import Counter
from collections.abc import Collection, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.checks.corpus import Case, Kind, needs_of
from tests.server import Verdict, run_python, server_of
from tests.versions import installed

NEEDS = {"peft": ("peft",), "trl": ("trl", "peft"), "lightning": ("lightning",)}
"""Packages of the extra styles, by a script's style."""


@cache
def scripts_in(folder: Path) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = tomllib.loads((folder / "manifest.toml").read_text(encoding="utf-8"))["script"]
    return listed


def parameters(folder: Path, guards: Collection[str]) -> Iterator[Any]:
    """A parameter for each script; ``guards`` are those that guard every change, the others are nightly."""
    for script in scripts_in(folder):
        marks = [pytest.mark.slow if script["file"] in guards else pytest.mark.nightly]
        marks += [pytest.mark.distributed] if script.get("processes", 1) > 1 else []
        yield pytest.param(script, id=Path(script["file"]).stem, marks=marks)


def must_be_named(folder: Path, script: dict[str, Any], config: pytest.Config) -> None:
    """What is wrong in it is named, and nothing else."""
    __tracebackhide__ = True
    if not installed("transformers>=5"):
        pytest.skip("the scripts are written for transformers 5")
    file = folder / script["file"]
    text = file.read_text(encoding="utf-8")
    kind: Kind = "bug" if "bug" in script else "right"
    for needed in (*NEEDS.get(script["style"], ()), *needs_of(text)):
        if not installed(needed):
            pytest.skip(f"needs {needed}, of the extra styles")
    if script.get("processes", 1) > 1:
        verdict = _in_processes(file, script["processes"])
    else:
        verdict = server_of(config).watch(Case(kind, file.stem, file.name, None, text))
    assert verdict.crashed is None, verdict.crashed
    assert verdict.not_looked_at == [], "a check itself crashed"
    roots = [each["check"] for each in verdict.findings if each["explained_by"] is None]
    assert list(dict.fromkeys(roots)) == script["found"], verdict.findings


def _in_processes(file: Path, processes: int) -> Verdict:
    """As a user starts it: what gloo does to a fork, or when a rank ends, is no matter of a script's."""
    with tempfile.TemporaryDirectory() as name:
        shutil.copy(file, name)
        found = Path(name) / "found.json"
        words = ("check", "--processes", str(processes), f"--json={found}", file.name)
        return Verdict.of(found, run_python(Path(name), "-m", "harness", *words))


def must_be_complete(folder: Path, bugs: int, right: int) -> None:
    """Each script is listed, and there are as many as promised."""
    __tracebackhide__ = True
    listed = scripts_in(folder)
    assert {script["file"] for script in listed} == {str(f.relative_to(folder)) for f in folder.glob("*/*.py")}
    kinds = Counter("bug" in script for script in listed)
    assert kinds[True] >= bugs
    assert kinds[False] >= right
