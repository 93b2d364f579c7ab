"""Other styles of loop, a folder each: a right script ``train.py``, and ``corpus.toml`` with edits of it.

As in :mod:`tests.checks.corpus` a ``[[bug]]`` is found by its ``check`` and by no other, in a ``[[right]]`` nothing is,
and an ``[[unseen]]`` bug says ``why`` nothing sees it. ``needs`` names the library of the style, one of the
extra ``styles``.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, cast

import pytest

from tests.checks.conftest import must_be_as_said
from tests.checks.corpus import Case, Kind, edited
from tests.server import server_of

FOLDER = Path(__file__).parent
STYLES = sorted(file.parent.name for file in FOLDER.glob("*/corpus.toml"))


def cases_of(style: str) -> Iterator[tuple[Case, str | None]]:
    """Each case of a style, and the library that it needs."""
    folder = FOLDER / style
    table = tomllib.loads((folder / "corpus.toml").read_text(encoding="utf-8"))
    needs = table.pop("needs", None)
    for kind, entries in table.items():
        for entry in entries:
            text = edited(folder / "train.py", entry.pop("edit", ()))
            yield Case(cast("Kind", kind), script="train.py", text=text, **{"check": None, **entry}), needs


def parameters() -> Iterator[Any]:
    """The first of each kind in each style guards every change; the others are nightly."""
    seen: set[tuple[str, str]] = set()
    for style in STYLES:
        for case, needs in cases_of(style):
            marks = (pytest.mark.nightly,) if (style, case.kind) in seen else (pytest.mark.slow,)
            seen.add((style, case.kind))
            yield pytest.param(case, needs, id=f"{style}-{case.name}", marks=marks)


@pytest.mark.parametrize(("case", "needs"), list(parameters()))
def test_a_style_is_seen(case: Case, needs: str | None, pytestconfig: pytest.Config) -> None:
    if needs is not None:
        try:
            version(needs)
        except PackageNotFoundError:
            pytest.skip(f"needs {needs}, of the extra styles")
    must_be_as_said(case, server_of(pytestconfig).watch(case))


@pytest.mark.parametrize("style", STYLES)
def test_a_style_has_bugs_and_right_scripts(style: str) -> None:
    kinds = Counter(case.kind for case, _ in cases_of(style))
    assert kinds["bug"] >= 3
    assert kinds["right"] > 3, "the script as it is, and three more"
