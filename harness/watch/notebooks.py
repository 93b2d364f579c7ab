"""A notebook as a script: its cells of code one after another, without what only IPython can run."""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, NamedTuple

from harness.findings import CELLS

SUFFIX = ".ipynb"

MAJOR = 4
"""Major version of nbformat that is read: earlier ones have worksheets."""

NOT_PYTHON = re.compile(r"^(\s*)(?:[%!?]|[\w.]+\s*=\s*[%!]|[\w.]+\?\??\s*$)")
"""A line that is a magic, a command of the shell, or a question, or takes the result of one."""

TIMED = re.compile(r"%%(time|timeit|capture|prun)\b")
"""Magics of a cell that run it as Python."""


class CodeCell(NamedTuple):
    """A cell of code."""

    number: int
    """Number that Jupyter gives the cell when all are run from the start: In[1] is the first."""
    source: str
    """Python, with ``pass`` in the place of what is not."""
    skipped: list[str]
    """The lines that are not."""

    @property
    def file(self) -> str:
        """The name that its code is compiled under."""
        return cell_file(self.number)


def cell_file(number: int) -> str:
    return f"In[{number}]"


def loaded(text: str) -> dict[str, Any]:
    """A notebook.

    Raises:
        ValueError: the text is none of nbformat 4; says what was expected.
    """
    notebook: dict[str, Any] = json.loads(text)
    version = notebook.get("nbformat") if isinstance(notebook, dict) else None
    if version != MAJOR or not isinstance(notebook.get("cells"), list):
        raise ValueError(f"expected a notebook of nbformat {MAJOR}, found {version}; jupyter nbconvert converts it")
    for number, cell in enumerate(notebook["cells"], 1):
        if not isinstance(cell, dict) or not isinstance(cell.get("source"), str | list):
            raise ValueError(f"cell {number} has no source")
    return notebook


def joined(text: str | list[str]) -> str:
    """A text that nbformat may keep as a list of lines."""
    return text if isinstance(text, str) else "".join(text)


def cells_of(path: Path) -> list[CodeCell]:
    """The cells of code.

    Raises:
        ValueError: it is no notebook of nbformat 4.
    """
    cells = [each for each in loaded(path.read_text(encoding="utf-8"))["cells"] if each.get("cell_type") == "code"]
    return [CodeCell(number, *_python(joined(each["source"]))) for number, each in enumerate(cells, start=1)]


def _python(source: str) -> tuple[str, list[str]]:
    lines = source.split("\n")
    first = next((line for line in lines if line.strip()), "")
    if first.startswith("%%") and not TIMED.match(first):
        return "pass", [first]
    if _is_python(source):  # a line of an expression in brackets, or of a text, may begin with % too
        return source, []
    skipped, kept = [], []
    for line in lines:
        found = NOT_PYTHON.match(line)
        if found is not None:
            skipped.append(line.strip())
        kept.append(line if found is None else f"{found[1]}pass")
    return "\n".join(kept), skipped


def _is_python(source: str) -> bool:
    try:
        ast.parse(source)
    except (SyntaxError, ValueError):
        return False
    return True


def compiled(path: Path) -> Iterator[CodeType]:
    """The code of each cell, which findings name as Jupyter does.

    Raises:
        SyntaxError, ValueError: a cell is not Python, or it is no notebook; an error says in which cell.
    """
    for cell in cells_of(path):
        CELLS[cell.number] = cell.source.split("\n")
        yield compile(cell.source, cell.file, "exec")


def run(path: Path) -> dict[str, Any]:
    """Run all cells as ``__main__``; what they defined."""
    main = ModuleType("__main__")
    main.__dict__.update({"__file__": str(path), "display": print})
    before, sys.modules["__main__"] = sys.modules["__main__"], main
    try:
        for code in compiled(path):
            exec(code, main.__dict__)  # noqa: S102 - the user's own notebook
    finally:
        sys.modules["__main__"] = before
    return main.__dict__


def skipped(path: Path) -> str | None:
    """What of a notebook is not run, in one sentence."""
    lines = [f"{line} (cell {cell.number})" for cell in cells_of(path) for line in cell.skipped]
    return f"IPython commands were not run: {'; '.join(lines)}" if lines else None
