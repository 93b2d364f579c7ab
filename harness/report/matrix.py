"""The matrix over versions, for the terminal and as Markdown."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from harness.errors import CannotTry
from harness.matrix import BESIDES, KINDS, Cell, Kind, Matrix, Row
from harness.record import write_atomically
from harness.report.terminal import table

MARK, END = "<!-- matrix -->", "<!-- end of matrix -->"

SIGNS = {"holds": "holds", "differs": "differs", "fails": "FAILS", "not applicable": "n/a", "not tried": "-"}

CHANGED = "*"
"""After a cell that is not what was recorded."""

INLINE, LENGTH = 20, 160
"""Values of so many characters are shown in their cell, longer ones below the table and cut to the second."""


def matrix_lines(matrix: Matrix, recorded: Matrix | None, *, everything: bool = False) -> Iterator[str]:
    """The matrix, the values that are not as documented, and what changed against the recorded one."""
    changed = {(row.id, column) for row, column, _ in matrix.changed(recorded)} if recorded else set()
    names = [column.name for column in matrix.columns]
    yield from table([("transformers", *names), *_besides(matrix)])
    for kind, title in KINDS.items():
        rows, alike = _shown(matrix, kind, everything)
        if not rows and not alike:
            continue
        yield ""
        yield f"{title}:"
        notes: dict[str, int] = {}
        lines = [(row.title, *(_sign(row, name, changed, notes) for name in names)) for row in rows]
        if lines:
            yield from (f"  {line}" for line in table(lines))
        if alike:
            yield f"  {alike} more as documented, or not applicable, on all versions"
        yield from (f"    ({number}) {note}" for note, number in notes.items())
    yield from changed_lines(matrix, recorded)


def changed_lines(matrix: Matrix, recorded: Matrix | None) -> Iterator[str]:
    if recorded is None:
        return
    changed = matrix.changed(recorded)
    yield ""
    yield f"{len(changed)} cells are not what was recorded" if changed else "every cell is as recorded"
    for row, column, before in changed:
        yield f"  {row.title} on {column}: was {_told(before)}, is {_told(row.cell(column))}"


def _besides(matrix: Matrix) -> list[tuple[str, ...]]:
    return [(name, *(column.libraries.get(name) or "-" for column in matrix.columns)) for name in BESIDES]


def _shown(matrix: Matrix, kind: Kind, everything: bool) -> tuple[list[Row], int]:
    rows = [row for row in matrix.rows if row.kind == kind]
    shown = [row for row in rows if everything or row.varies]
    return shown, len(rows) - len(shown)


def _sign(row: Row, column: str, changed: set[tuple[str, str]], notes: dict[str, int]) -> str:
    cell = row.cell(column)
    sign = SIGNS[cell.outcome] + (CHANGED if (row.id, column) in changed else "")
    if cell.value is None or cell.outcome not in ("differs", "fails"):
        return sign
    if len(cell.value) <= INLINE:
        return f"{sign}: {cell.value}"
    return f"{sign} ({notes.setdefault(_short(cell.value), len(notes) + 1)})"


def _told(cell: Cell) -> str:
    return f"{cell.outcome} ({_short(cell.value)})" if cell.value else cell.outcome


def _short(value: str) -> str:
    text = " ".join(value.split())
    return text if len(text) <= LENGTH else f"{text[: LENGTH - 3]}..."


def markdown_lines(matrix: Matrix, recorded: Matrix | None, *, everything: bool = False) -> Iterator[str]:
    """The same as Markdown; values below the tables."""
    changed = {(row.id, column) for row, column, _ in matrix.changed(recorded)} if recorded else set()
    names = [column.name for column in matrix.columns]
    yield from _markdown_table(("transformers", *names), _besides(matrix))
    for kind, title in KINDS.items():
        rows, alike = _shown(matrix, kind, everything)
        if not rows and not alike:
            continue
        notes: dict[str, int] = {}
        lines = [
            (_title(row), *(_sign(row, name, changed, notes).replace(CHANGED, r"\*") for name in names)) for row in rows
        ]
        yield ""
        if lines:
            yield from _markdown_table((title, *names), lines)
        if alike:
            yield ""
            more = f"{alike} more rows" if lines else f"{alike} rows"
            yield f"{title}: {more} are as documented, or not applicable, on all versions."
        if notes:
            yield ""
            yield from (f"{number}. {_escaped(note)}" for note, number in notes.items())


def _title(row: Row) -> str:
    if row.kind in ("library", "difference"):
        return _escaped(row.title)
    name, _, places = row.title.partition(" (" if row.kind in ("code", "output") else " [")
    return f"`{name}`" + (f" ({places.rstrip(')]')})" if places else "")


def _escaped(text: str) -> str:
    return text.replace("|", r"\|").replace("<", r"\<").replace("*", r"\*").replace("_", r"\_")


def _markdown_table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{' --- |' * len(head)}"
    yield from (f"| {' | '.join(row)} |" for row in rows)


def write_markdown(path: Path, lines: Iterator[str]) -> None:
    """Between the marks of a file that has them; otherwise the file is the matrix.

    Raises:
        CannotTry: only one of the two marks is there.
    """
    text = "\n".join(lines)
    if path.exists() and (MARK in (there := path.read_text(encoding="utf-8")) or END in there):
        before, mark, rest = there.partition(MARK + "\n")
        _, end, after = rest.partition(END + "\n")
        if not mark or not end:
            raise CannotTry(f"{path} has only one of the lines {MARK} and {END}; give both or none")
        text = f"{before}{MARK}\n{text}\n{END}\n{after}"
    else:
        text += "\n"
    write_atomically(path, text)
