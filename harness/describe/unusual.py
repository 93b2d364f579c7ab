"""Lines of a page that hardly any correct training has: marked, and never an error.

The table ``usual.json``, which :mod:`scripts.usual` writes, says how many correct projects have each fact that
:mod:`harness.describe.judged` knows. It has counts alone, nothing of the projects.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources

from harness.describe.description import Line
from harness.describe.judged import judged
from harness.findings import Unusual

RAREST = 0.01
"""Share of the projects that have a fact, at most, for it to be marked."""

ENOUGH = 100
"""Projects that could have a fact, from which on a share tells anything."""

MOST_SHOWN = 3
"""Marks that ``harness check`` shows."""

TRAININGS, LANGUAGE_MODELS = "trainings", "language models"
"""Groups of projects: what is taught to language models is compared among those alone."""


@dataclass(frozen=True)
class Usual:
    """How many correct projects of a group there are, and how many have each fact."""

    projects: int
    facts: Mapping[str, int]

    def is_rare(self, fact: str) -> bool:
        return self.projects >= ENOUGH and self.facts.get(fact, 0) <= RAREST * self.projects


Table = Mapping[str, Usual]


def group_of(line: Line) -> str:
    """The projects among which the facts of a line are compared."""
    return LANGUAGE_MODELS if line.section == "taught" else TRAININGS


@cache
def usual() -> Table:
    """The table that comes with the package."""
    found = json.loads(resources.files("harness.describe").joinpath("usual.json").read_text(encoding="utf-8"))
    return {group: Usual(each["projects"], each["facts"]) for group, each in found["groups"].items()}


def unusual(lines: Sequence[Line], table: Table | None = None) -> Iterator[Unusual]:
    """The lines of a page that have a rare fact, in causal order, each with its rarest."""
    table = usual() if table is None else table
    for line in lines:
        known = table.get(group_of(line), Usual(0, {}))
        rare = [fact for fact in judged(line) if known.is_rare(fact)]
        if rare and line.text:
            rarest = min(rare, key=lambda fact: known.facts.get(fact, 0))
            times = known.facts.get(rarest, 0)
            yield Unusual(line.section, line.text, rarest, times, known.projects, line.where)


def rarest(marks: Sequence[Unusual]) -> list[Unusual]:
    """The marks that are shown where there is no page: the rarest, in causal order."""
    chosen = sorted(marks, key=lambda mark: mark.projects / mark.of)[:MOST_SHOWN]
    return [mark for mark in marks if mark in chosen]
