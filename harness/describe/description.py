"""A description: what a run did, on one page. It needs nothing of torch's: whoever prints it may not have that."""

from __future__ import annotations

import os
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, ClassVar

from harness.findings import Finding, Isolation, Report, Unusual, strict

ORDER = (
    "data",
    "taught",
    "loss",
    "model",
    "loaded",
    "optimizer",
    "schedule",
    "update",
    "evaluation",
    "metric",
    "saved",
    "randomness",
    "checks",
)
"""The sections of a page: what comes first is the cause of what comes after it."""

FEWEST_ALIKE = 3
"""Lines that are alike but for the numbers of what they are about, from which on they are one."""

WIDTH, INDENT = 120, 12
"""Characters of a line on a terminal, and those before what a section says."""


@dataclass(frozen=True)
class Line:
    """One thing that a run did."""

    section: str
    text: str
    """Empty where only a baseline keeps it."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Key to what JSON can hold: without times and paths of a machine, so that the same run has the same facts."""
    where: str | None = None
    """FILE:LINE of the user's line."""


@dataclass
class Description(Report):
    """What a run did."""

    kind: ClassVar[str] = "description"
    script: str
    updates: int = 0
    lines: list[Line] = field(default_factory=list)
    """Lines in causal order. Those without text say what a baseline keeps."""
    numbers: dict[str, list[float]] = field(default_factory=dict)
    """Losses and norms of the first updates and the last, and metrics, by key."""
    unusual: list[Unusual] = field(default_factory=list)
    """The lines that hardly any correct training has."""
    findings: list[Finding] = field(default_factory=list)
    held: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    shortened: bool = False
    """Whether passes over DataLoaders were, so that counts are of what was left of them."""
    crashed: str | None = None
    seconds: float = 0.0
    isolation: Isolation | None = None
    """What became of the user's files; None where whoever runs the script sees to them."""

    def __str__(self) -> str:
        return "\n".join(self.text())

    def text(self) -> Iterator[str]:
        """The page as a terminal shows it: each section by its name, the user's own line behind what it did."""
        if self.crashed is not None:
            yield f"{self.script} ended early ({self.crashed.splitlines()[-1]}): this is what it did until then"
        marks = {(each.section, each.text, each.where): each.mark for each in self.unusual}
        for section, lines in groupby((each for each in self.lines if each.text), key=lambda line: line.section):
            name, before = section, None
            for shown in _put_together(lines):
                place = f" ({self._place(shown.where)})" if shown.where and shown.where != before else ""
                mark = marks.get((section, shown.text, shown.where))
                place += f"  {mark}" if mark else ""
                before = shown.where
                yield from textwrap.wrap(
                    shown.text + place,
                    WIDTH,
                    initial_indent=f"{name:<{INDENT}}",
                    subsequent_indent=" " * (INDENT + 2),
                    break_on_hyphens=False,
                )
                name = ""
        found = [
            each.check + (f" (may follow from {each.explained_by})" if each.explained_by else "")
            for each in self.findings
        ]
        text = f"{len(self.held)} held, " + (f"found: {', '.join(found)}" if found else "none found anything")
        if self.held or found:
            yield f"{'checks':<{INDENT}}{text}"
        if self.shortened:
            yield "Long passes over a DataLoader were shortened: counts are of what was left. --full goes through all."
        yield from (f"note: {note}" for note in self.notes)

    def _place(self, where: str) -> str:
        """A line of the script without its folder: most lines are of one file."""
        file, _, line = where.rpartition(":")
        module = f"{self.script.replace('.', os.sep)}.py"
        scripts = {os.path.abspath(each) for each in (self.script, module)}
        return f"{os.path.basename(file)}:{line}" if os.path.abspath(file) in scripts else where

    def as_dict(self) -> dict[str, Any]:
        return strict(super().as_dict())

    @property
    def facts(self) -> dict[str, Any]:
        """What the run did, by key."""
        return {key: value for each in self.lines for key, value in each.facts.items()}


def _put_together(lines: Iterable[Line]) -> Iterator[Line]:
    """Lines that differ in the numbers of what they are about alone, as those of folds do, as one."""
    alike: dict[tuple[str, str | None], list[Line]] = {}
    for each in lines:
        alike.setdefault((re.sub(r"#\d+", "", each.text), each.where), []).append(each)
    for (text, where), of_it in alike.items():
        few = len(of_it) < FEWEST_ALIKE
        yield from of_it if few else [Line(of_it[0].section, f"{text} ({len(of_it)} alike)", {}, where)]
