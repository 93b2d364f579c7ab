"""What is trained and what is saved: scripts with a bug, and right ones that look as if they had one.

They were written without sight of the checks. ``manifest.toml`` says what is wrong in each, what was measured of it
apart from the harness, and what must be found, in that order: ``found``; nothing in a right one.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pytest

from tests.checks.corpus import Case
from tests.server import server_of
from tests.versions import installed

FOLDER = Path(__file__).parent
SCRIPTS: list[dict[str, Any]] = tomllib.loads((FOLDER / "manifest.toml").read_text(encoding="utf-8"))["script"]
NEEDS = {"peft": ("peft",), "trl": ("trl", "peft"), "lightning": ("lightning",)}
GUARDS = ("bugs/legal_top_layers.py", "bugs/spectra_classifier.py", "right/claims_save_state.py", "right/pollen_swa.py")
"""Those that guard every change; the others are nightly."""


def parameters() -> Iterator[Any]:
    for script in SCRIPTS:
        marks = [pytest.mark.slow if script["file"] in GUARDS else pytest.mark.nightly]
        marks += [pytest.mark.distributed] if script.get("processes", 1) > 1 else []
        yield pytest.param(script, id=Path(script["file"]).stem, marks=marks)


@pytest.mark.parametrize("script", list(parameters()))
def test_what_is_wrong_is_named_and_nothing_else(script: dict[str, Any], pytestconfig: pytest.Config) -> None:
    if not installed("transformers>=5"):
        pytest.skip("the scripts are written for transformers 5")
    for needed in NEEDS.get(script["style"], ()):
        try:
            version(needed)
        except PackageNotFoundError:
            pytest.skip(f"needs {needed}, of the extra styles")
    file = FOLDER / script["file"]
    kind = "bug" if "bug" in script else "right"
    case = Case(
        kind, file.stem, file.name, None, file.read_text(encoding="utf-8"), processes=script.get("processes", 1)
    )
    verdict = server_of(pytestconfig).watch(case)
    assert verdict.crashed is None, verdict.crashed
    assert verdict.not_looked_at == [], "a check itself crashed"
    assert list(dict.fromkeys(verdict.checks)) == script["found"]


def test_there_are_as_many_as_promised() -> None:
    assert {script["file"] for script in SCRIPTS} == {str(f.relative_to(FOLDER)) for f in FOLDER.glob("*/*.py")}
    kinds = Counter("bug" in script for script in SCRIPTS)
    assert kinds[True] >= 20
    assert kinds[False] >= 14
    assert all(script["found"] for script in SCRIPTS if "bug" in script), "none is missed"
    assert not any(script["found"] for script in SCRIPTS if "bug" not in script), "none cries wolf"
    styles = {script["style"] for script in SCRIPTS}
    assert styles == {"plain", "accelerate", "trainer", "peft", "trl", "lightning"}
    assert Counter(script.get("processes", 1) for script in SCRIPTS)[2] >= 2
