"""Scripts that were written for the CPU, moved to another device as their author would move them.

Models go there when they are made, and what a loop takes goes there first of all in its body; data stays on the host,
or goes, too, when it is made. The text is given calls for it, which :func:`tests.devices.run.main` makes builtins.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

NAME = "second"
MODEL, DATA = "model_on_device", "on_device"
"""What moves a model alone, and what moves tensors as well."""


@dataclass(frozen=True)
class Moved:
    text: str
    added: tuple[int, ...] = ()
    """The numbers of lines that the script did not have."""

    def line_before(self, line: int) -> int:
        """What the number of a line was before the script was moved."""
        return line - sum(each <= line for each in self.added)


def moved(text: str, made: str = MODEL) -> Moved:
    """The script with models and batches on the device, and with ``made=DATA`` all data, too.

    Lines keep their numbers but after loops that begin with a block.

    Raises:
        SyntaxError: the text is no Python.
    """
    inserted: list[tuple[int, int, str]] = []
    added: list[int] = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            value = node.value
            assert value.end_lineno is not None
            assert value.end_col_offset is not None
            inserted.append((value.lineno, value.col_offset, f"{made}("))
            inserted.append((value.end_lineno, value.end_col_offset, ")"))
        elif isinstance(node, ast.For) and not _counts(node.iter):
            first, taken = node.body[0], ast.unparse(node.target)
            begins_with_block = hasattr(first, "body")
            between = f"\n{' ' * first.col_offset}" if begins_with_block else "; "
            inserted.append((first.lineno, first.col_offset, f"{taken} = {DATA}({taken}){between}"))
            added += [first.lineno] * begins_with_block
    lines = text.splitlines(keepends=True)
    for line, column, words in sorted(inserted, key=lambda each: each[:2], reverse=True):
        whole = lines[line - 1].encode()
        lines[line - 1] = (whole[:column] + words.encode() + whole[column:]).decode()
    numbers = tuple(line + before for before, line in enumerate(sorted(added)))
    return Moved("".join(lines), numbers)


def asking(text: str) -> Moved:
    """The script with what it asks of CUDA asked of the second device; lines keep their numbers.

    A name of a device, whether there is one, how many there are, and ``.cuda()`` are mapped; streams, events and what
    else CUDA alone has are not.
    """
    for old, new in FOR_CUDA:
        text = old.sub(new, text)
    return Moved(text)


FOR_CUDA = [
    (re.compile(r"""(["'])cuda(:\d+)?\1"""), rf"\1{NAME}\2\1"),
    (re.compile(r"\btorch\.cuda\.is_available\(\)"), "True"),
    (re.compile(r"\btorch\.cuda\.device_count\(\)"), "1"),
    (re.compile(r"\.cuda\(\)"), f'.to("{NAME}")'),
]


def _counts(taken: ast.expr) -> bool:
    return isinstance(taken, ast.Call) and isinstance(taken.func, ast.Name) and taken.func.id == "range"
