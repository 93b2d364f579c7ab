"""Writing a replacement into the document in which it was tried: the lines that change, and not another byte."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from harness.documented_run.documents import notebooks
from harness.documented_run.documents.blocks import Block

PREFIX = re.compile(r"(?P<indent>[ \t]*)(?:>>> ?|\.\.\. ?)?")
"""What may stand in front of a line of code."""

BOM = "\ufeff"


class Fix(NamedTuple):
    """A block, and code that runs in its place."""

    block: Block
    code: str


class Rewritten(NamedTuple):
    """A document's text, before and with the fixes that could be written."""

    path: Path
    before: str
    after: str
    left: list[Block]
    """Blocks that do not stand in the document line by line as they were executed, so that nothing was written."""


def rewritten(path: Path, fixes: Sequence[Fix]) -> Rewritten:
    """A document with the fixes.

    Raises:
        OSError, UnicodeDecodeError, ValueError: it cannot be read (any more).
    """
    before = path.read_bytes().decode("utf-8")
    if path.suffix != ".ipynb":
        after, left = _edited(before, fixes)
        return Rewritten(path, before, after, left)
    text = before.removeprefix(BOM)
    cells = {each.number: each.source for each in notebooks.cells_of(text)}
    sources: dict[int, str] = {}
    left = []
    for number, group in groupby(fixes, key=lambda fix: fix.block.cell or 0):
        sources[number], of_cell = _edited(cells.get(number, ""), list(group))
        left += of_cell
    changed = {number: source for number, source in sources.items() if source != cells.get(number)}
    after = before[: len(before) - len(text)] + notebooks.with_sources(text, changed)
    return Rewritten(path, before, after, left)


def _edited(text: str, fixes: Sequence[Fix]) -> tuple[str, list[Block]]:
    """A text with the fixes, and the blocks that are not there."""
    lines = text.splitlines(keepends=True)
    edits: list[tuple[int, Fix]] = []
    left: list[Block] = []
    for fix in fixes:
        alike = [
            each.block.number
            for each in fixes
            if each.block.lines == fix.block.lines and each.block.code == fix.block.code
        ]
        places = list(_places(lines, fix.block))
        # Of code that stands there twice nobody knows which one ran, unless both are to be replaced.
        if len(places) != len(alike) or (_is_numbered(lines, fix.block) and not _as_long(fix)):
            left.append(fix.block)
        else:
            edits.append((places[alike.index(fix.block.number)], fix))
    for at, fix in sorted(edits, key=lambda edit: edit[0], reverse=True):
        end = at + len(fix.block.code.splitlines())
        lines[at:end] = _with_code(lines[at:end], fix)
    return "".join(lines), left


def _places(lines: Sequence[str], block: Block) -> Iterator[int]:
    """Where the code of a block stands, line by line, within the lines that the block has in its document."""
    code = block.code.splitlines()
    first, last = block.lines
    for at in range(first - 1, min(last, len(lines)) - len(code) + 1):
        fronts = [_front(line, each) for line, each in zip(lines[at : at + len(code)], code, strict=True)]
        if None not in fronts and len({front for front, each in zip(fronts, code, strict=True) if each.strip()}) == 1:
            yield at


def _front(line: str, code: str) -> str | None:
    """The indentation of a line that is this code; None where it is not."""
    line = line.splitlines()[0]
    if not code.strip():
        return "" if PREFIX.fullmatch(line.rstrip() + " ") or not line.strip() else None
    if not line.endswith(code):
        return None
    found = PREFIX.fullmatch(line[: len(line) - len(code)])
    return None if found is None else found["indent"]


def _with_code(lines: Sequence[str], fix: Fix) -> list[str]:
    """The lines of a block with the new code: those that stay are as they were."""
    old, new = fix.block.code.splitlines(), fix.code.splitlines()
    newline = "\r\n" if lines[0].endswith("\r\n") else "\n"
    front = lines[0].splitlines()[0].removesuffix(old[0])
    found: list[str] = []
    for kind, begins, ends, first, last in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        found += lines[begins:ends] if kind == "equal" else [f"{front}{each}{newline}" for each in new[first:last]]
    if found and not lines[-1].endswith(("\n", "\r")):
        found[-1] = found[-1].rstrip("\r\n")
    return found


def _is_numbered(lines: Sequence[str], block: Block) -> bool:
    """Whether the numbers of its lines stand above it."""
    first, last = block.lines
    return block.cell is None and 1 < first <= len(lines) and lines[first - 2].strip() == str(last - first + 1)


def _as_long(fix: Fix) -> bool:
    return len(fix.code.splitlines()) == len(fix.block.code.splitlines())
