"""The lines of ``harness explain``."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from harness.catalogue import SECTIONS


def list_lines(pages: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Every fault with its statement, by family."""
    width = max(len(page["id"]) for page in pages) + 2
    for family, members in groupby(pages, key=lambda page: page["id"].partition("::")[0]):
        yield family
        for page in members:
            marks = ["warning"] * (page["severity"] == "warning") + ["new"] * (page["status"] == "new")
            mark = f"  ({', '.join(marks)})" if marks else ""
            lines = textwrap.wrap(page["statement"] + mark, max(30, _columns() - width - 2))
            yield f"  {page['id']:<{width}}{lines[0]}"
            yield from (" " * (width + 2) + line for line in lines[1:])
    yield ""
    yield f"{len(pages)} in total; harness explain ID says why it is a bug, what to do, and when it is not a bug"


def page_lines(page: Mapping[str, Any]) -> Iterator[str]:
    """One fault's page."""
    new = f", new in {page['since']}: reported as a warning" if page["status"] == "new" else ""
    yield f"{page['id']} ({page['severity']}{new})"
    if page["formerly"]:
        yield f"formerly {', '.join(page['formerly'])}"
    yield ""
    yield from textwrap.wrap(page["statement"], _columns())
    for title, key in SECTIONS.items():
        content = page[key]
        if content:
            yield ""
            yield title
            paragraphs = [f"- {each}" for each in content] if isinstance(content, list) else content.split("\n\n")
            for paragraph in paragraphs:
                yield from (f"  {line}" for line in _wrapped(paragraph))


UNUSUAL_PAGE = """
A mark says how many of the correct trainings that were counted have what a line of the page says, where hardly any has:
at most one in a hundred. It is a hint about where to look, and no finding: the exit status does not change, and a
training may be right and unusual.

harness describe marks each such line. harness check shows the three rarest, below "worth a look", but not with --full.

Counted are about 60 kinds of facts: how evaluations are called, shares of rows, order and completeness of passes,
tensors without a gradient or a change, learning rates at the end, steps of schedulers, what was loaded, saved and
reported. Sizes, names and shapes are not. A project, with all its versions, counts once; what is taught to language
models is compared among those alone. docs/unusual.md has the table.

Where you mean it, a comment in the line switches the mark off, and so does an option for all:

    model.train()  # harness: ignore[unusual]
    harness check --ignore unusual train.py
"""


def unusual_lines() -> Iterator[str]:
    """What the marks of lines that hardly any correct training has mean, and how large their table is."""
    from harness.describe.unusual import TRAININGS, usual

    yield "unusual (a mark, no finding)"
    for paragraph in UNUSUAL_PAGE.strip().split("\n\n"):
        yield ""
        yield from _wrapped(paragraph)
    known = usual().get(TRAININGS)
    if known is not None:
        yield ""
        yield f"The table of this version was made from {known.projects} correct projects."


def _wrapped(paragraph: str) -> list[str]:
    """Text filled to the terminal's width; a list's and a code block's lines as they are."""
    if paragraph.startswith(("-", "```", "    ")):
        return paragraph.splitlines()
    return textwrap.wrap(" ".join(paragraph.split()), _columns() - 2, break_on_hyphens=False, break_long_words=False)


def _columns() -> int:
    return min(100, shutil.get_terminal_size().columns)
