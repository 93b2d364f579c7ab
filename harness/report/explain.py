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


def _wrapped(paragraph: str) -> list[str]:
    """Text filled to the terminal's width; a list's and a code block's lines as they are."""
    if paragraph.startswith(("-", "```", "    ")):
        return paragraph.splitlines()
    return textwrap.wrap(" ".join(paragraph.split()), _columns() - 2, break_on_hyphens=False, break_long_words=False)


def _columns() -> int:
    return min(100, shutil.get_terminal_size().columns)
