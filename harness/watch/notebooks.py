"""A notebook as a script: its cells of code one after another, without what only IPython can run."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, NamedTuple

from harness.findings import CELLS

SUFFIX = ".ipynb"

NOT_PYTHON = re.compile(r"^(\s*)(?:[%!?]|[\w.]+\s*=\s*[%!]|[\w.]+\?\??\s*$)")
"""A line that is a magic, a command of the shell, or a question, or takes the result of one."""

TIMED = re.compile(r"%%(time|timeit|capture|prun)\b")
"""Magics of a cell that run it as Python."""


class Cell(NamedTuple):
    """A cell of code."""

    number: int
    """As Jupyter numbers it when all of them are run from the start: In[1] is the first."""
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


def cells_of(path: Path) -> list[Cell]:
    """The cells of code.

    Raises:
        ValueError: it is no notebook of nbformat 4.
    """
    notebook = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(notebook, dict) or not isinstance(notebook.get("cells"), list):
        raise ValueError("a notebook has a list of cells (nbformat 4)")
    cells = [each for each in notebook["cells"] if isinstance(each, dict) and each.get("cell_type") == "code"]
    return [Cell(number, *_python(_source(each))) for number, each in enumerate(cells, start=1)]


def _source(cell: dict[str, Any]) -> str:
    source = cell.get("source", "")
    return source if isinstance(source, str) else "".join(source)


def _python(source: str) -> tuple[str, list[str]]:
    lines = source.split("\n")
    first = next((line for line in lines if line.strip()), "")
    if first.startswith("%%") and not TIMED.match(first):
        return "pass", [first]
    skipped, kept = [], []
    for line in lines:
        found = NOT_PYTHON.match(line)
        if found is not None:
            skipped.append(line.strip())
        kept.append(line if found is None else f"{found[1]}pass")
    return "\n".join(kept), skipped


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
    return f"lines for IPython were not run: {'; '.join(lines)}" if lines else None
