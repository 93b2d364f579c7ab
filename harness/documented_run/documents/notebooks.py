"""Jupyter notebooks (nbformat 4): their cells of code, and new source for some with every other byte as it was.

A notebook is JSON, and the standard library reads it: nbformat would write all of it anew, in a layout of its own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from harness.watch.notebooks import joined, loaded

DECODER = json.JSONDecoder()
SPACE = re.compile(r"[ \t\r\n]*")


class NotebookCell(NamedTuple):
    """A cell of code."""

    number: int
    """Among all cells, counted from 1."""
    line: int
    """Line of the file at which its source begins, counted from 1."""
    source: str
    printed: str
    """Stored output as text: the stream stdout and the plain text of what was shown."""
    raises: str | None
    """The type of the error that is stored as its output."""


def cells_of(text: str) -> list[NotebookCell]:
    """The cells of code.

    Raises:
        ValueError: the text is no notebook of nbformat 4; says what was expected.
    """
    notebook = loaded(text)
    found = []
    for number, start in enumerate(_starts(text), 1):
        cell = notebook["cells"][number - 1]
        if cell.get("cell_type") != "code":
            continue
        begins, _ = _member(text, start, "source")
        outputs = cell.get("outputs", [])
        raises = next((each.get("ename") for each in outputs if each.get("output_type") == "error"), None)
        # The first of several lines stands behind the bracket.
        line = text.count("\n", 0, SPACE.match(text, begins + 1).end() if text[begins] == "[" else begins) + 1  # type: ignore[union-attr]
        printed = "".join(_shown(each) for each in outputs).strip("\n")
        found.append(NotebookCell(number, line, joined(cell["source"]), printed, raises))
    return found


def with_sources(text: str, sources: Mapping[int, str]) -> str:
    """The notebook with other sources for some cells, by number; every byte besides is as it was.

    A line that stays keeps its spelling in JSON; a new one has that of the others, indentation included.
    """
    starts = _starts(text)
    for number in sorted(sources, reverse=True):
        begins, ends = _member(text, starts[number - 1], "source")
        text = text[:begins] + _respelled(text[begins:ends], sources[number]) + text[ends:]
    return text


def _shown(output: Mapping[str, Any]) -> str:
    if output.get("output_type") == "stream":
        return joined(output.get("text", "")) if output.get("name", "stdout") == "stdout" else ""
    if output.get("output_type") in ("execute_result", "display_data"):
        return joined(output.get("data", {}).get("text/plain", "")) + "\n"
    return ""


def _starts(text: str) -> list[int]:
    """Where each cell begins."""
    begins, _ = _member(text, _skipped(text, 0), "cells")
    return [start for _, start, _ in _members(text, begins)]


def _member(text: str, at: int, key: str) -> tuple[int, int]:
    """Where the value of a key begins and ends, in the object that begins at ``at``; of several, the last counts."""
    return [(start, end) for name, start, end in _members(text, at) if name == key][-1]


def _members(text: str, at: int) -> Iterator[tuple[str | None, int, int]]:
    """The keys of an object, or None for each item of an array, with where its value begins and ends.

    The text is JSON that was read before, so that nothing here can be out of place.
    """
    closing = {"{": "}", "[": "]"}[text[at]]
    at = _skipped(text, at + 1)
    while text[at] != closing:
        key = None
        if closing == "}":
            key, at = DECODER.raw_decode(text, at)
            at = _skipped(text, _skipped(text, at) + 1)
        _, end = DECODER.raw_decode(text, at)
        yield key, at, end
        at = _skipped(text, end)
        if text[at] == ",":
            at = _skipped(text, at + 1)


def _skipped(text: str, at: int) -> int:
    return SPACE.match(text, at).end()  # type: ignore[union-attr]


def _respelled(old: str, source: str) -> str:
    """A source in JSON, spelled as ``old`` is."""
    ascii_only = old.isascii()
    if not old.startswith("["):
        return json.dumps(source, ensure_ascii=ascii_only)
    items = [(start, end) for _, start, end in _members(old, 0)]
    spelled = {json.loads(old[start:end]): old[start:end] for start, end in items}
    first, last = items[0][0], items[-1][1]
    between = old[items[0][1] : items[1][0]] if len(items) > 1 else "," + old[1:first]
    lines = source.splitlines(keepends=True)
    new = between.join(spelled.get(line) or json.dumps(line, ensure_ascii=ascii_only) for line in lines)
    return old[:first] + new + old[last:]
