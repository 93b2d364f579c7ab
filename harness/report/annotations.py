"""Findings as annotations of GitHub's workflow runs, which shows them at the lines that a pull request changes.

Printed beside the ordinary lines where ``GITHUB_ACTIONS`` is "true" (GitHub's documentation, "Workflow commands").
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from harness.findings import PLACE, Finding
from harness.matrix import Change
from harness.record import BlockRecord


def running_in_github_actions() -> bool:
    return os.environ.get("GITHUB_ACTIONS") == "true"


def of_findings(findings: Iterable[Finding]) -> Iterator[str]:
    for finding in findings:
        text = f"expected {finding.expected}; observed {finding.observed}\n{finding.hint}"
        place = PLACE.match(finding.where or "")
        where = {"file": from_repository(place["file"]), "line": place["line"]} if place else {}
        yield annotation(finding.severity, f"{finding.check}: {finding.message}", text, **where)


def of_block(block: BlockRecord, file: str) -> Iterator[str]:
    """A block that fails as printed, or is deprecated, at its first line in its document."""
    if block.outcome in ("fails", "deprecated"):
        text = f"{block.says}" + (f"\nwrite {block.replacement} ({block.source})" if block.replacement else "")
        level = "error" if block.outcome == "fails" else "warning"
        yield annotation(
            level, f"{block.label} {block.outcome}", text, file=from_repository(file), line=str(block.line)
        )


def of_changes(changes: Iterable[Change]) -> Iterator[str]:
    for change in changes:
        now = f"{change.now.outcome} {change.now.value or ''}" if change.now else "gone"
        yield annotation("warning", f"{change.row.title} on {change.column}", f"was {change.before.outcome}, is {now}")


def from_repository(file: str) -> str:
    """A file as annotations name it: from the root of its repository, wherever a step of the workflow works."""
    path = Path(file).resolve()
    roots = [each for each in path.parents if (each / ".git").exists()]
    roots += [Path(each).resolve() for each in (os.environ.get("GITHUB_WORKSPACE"),) if each]
    root = next((each for each in roots if path.is_relative_to(each)), None)
    return path.relative_to(root).as_posix() if root else file


def annotation(level: str, title: str, text: str, **where: str) -> str:
    """One workflow command.

    >>> annotation("error", "loss::finite: ...", "100 %", file="train.py", line="3")
    '::error file=train.py,line=3,title=loss%3A%3Afinite%3A ...::100 %25'
    """
    properties = ",".join(f"{name}={_escaped(value, ':,')}" for name, value in (where | {"title": title}).items())
    return f"::{level} {properties}::{_escaped(text)}"


def _escaped(text: str, more: str = "") -> str:
    return "".join(f"%{ord(each):02X}" if each in f"%\r\n{more}" else each for each in text)
