"""What a run did, as lines on a terminal."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.describe.page import Description

WIDTH = 120
"""Characters of a line."""

INDENT = 12
"""Where what a section says begins."""


def description_lines(report: Description) -> Iterator[str]:
    """The page: each section by its name, each line with the user's own line behind it."""
    said = [each for each in report.lines if each.text]
    for section, lines in groupby(said, key=lambda line: line.section):
        name, before = section, None
        for each in lines:
            place = f" ({_place(each.where, report.script)})" if each.where and each.where != before else ""
            before = each.where
            yield from textwrap.wrap(
                each.text + place,
                WIDTH,
                initial_indent=f"{name:<{INDENT}}",
                subsequent_indent=" " * (INDENT + 2),
                break_on_hyphens=False,
            )
            name = ""
    found = [each.check for each in report.findings]
    held = f"{len(report.held)} held"
    yield f"{'checks':<{INDENT}}{held}, {'found: ' + ', '.join(found) if found else 'none found anything'}"
    if report.shortened:
        yield "Long passes over a DataLoader were shortened, and counts are of what was left; --full goes through all."
    yield from (f"note: {note}" for note in report.notes)


def _place(where: str, script: str) -> str:
    """A line of the script without its folder: most lines are of one file."""
    file, _, line = where.rpartition(":")
    return f"{os.path.basename(file)}:{line}" if os.path.abspath(file) == os.path.abspath(script) else where
