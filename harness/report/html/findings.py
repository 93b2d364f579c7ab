"""Findings as the page shows them: with the lines around their place, and the page of their check."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness import catalogue
from harness.findings import PLACE, Finding, code_frame

AROUND = 3
"""Lines of the script above and below the one that is meant."""


@dataclass(frozen=True)
class FrameLine:
    """A line of the script."""

    text: str
    meant: bool


@dataclass(frozen=True)
class Shown:
    """A finding with what helps to understand it."""

    finding: Finding
    frame: tuple[FrameLine, ...] = ()
    newer: bool = False
    """Whether the script was changed after the finding was written down, so that its lines may be others."""
    page: Mapping[str, Any] | None = None
    """Page of its check, as ``harness explain --json`` has it."""


def of_script(findings: Iterable[Finding], written: Path) -> list[Shown]:
    """Findings of ``harness check`` and ``harness resume``, errors first; ``written`` is the file they are from."""
    explained = catalogue.explain()
    pages = {name: page for page in explained for name in page["formerly"]} | {page["id"]: page for page in explained}
    return [Shown(each, *_frame(each.where, written), page=pages.get(each.check)) for each in errors_first(findings)]


def of_run(findings: Iterable[Finding]) -> list[Shown]:
    """Findings of a run's checks and comparisons, errors first: their places are data, and no script."""
    return [Shown(each) for each in errors_first(findings)]


def errors_first(findings: Iterable[Finding]) -> list[Finding]:
    return sorted(findings, key=lambda each: each.severity != "error")


def _frame(where: str | None, written: Path) -> tuple[tuple[FrameLine, ...], bool]:
    """The lines around a place in a Python file: of other files nothing is shown."""
    place = PLACE.fullmatch(where or "")
    script = Path(place["file"]) if place else Path()
    if script.suffix != ".py" or not script.is_file():
        return (), False
    lines = tuple(FrameLine(line, line.startswith(">")) for line in code_frame(where, AROUND))
    return lines, script.stat().st_mtime > written.stat().st_mtime
