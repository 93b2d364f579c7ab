"""A log as annotations of GitHub's workflow runs, which shows them at the lines that a pull request changes.

Printed beside the ordinary lines where ``GITHUB_ACTIONS`` is "true" (GitHub's documentation, "Workflow commands").
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from harness.report.log import Log


def running_in_github_actions() -> bool:
    return os.environ.get("GITHUB_ACTIONS") == "true"


def of_log(log: Log) -> Iterator[str]:
    """One workflow command for each thing that was found, at its place."""
    for result in log.results:
        line = {"line": str(result.line)} if result.line else {}
        where = {"file": from_repository(result.file)} | line if result.file else {}
        yield annotation(result.severity, f"{result.rule.id}: {result.subject}", result.details, **where)


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
