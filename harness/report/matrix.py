"""The matrix over versions, for the terminal and as Markdown."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from harness.errors import CannotTry
from harness.files import write_atomically
from harness.findings import shortened
from harness.matrix import BESIDES, KINDS, Cell, Kind, Matrix, Row, merged
from harness.report.terminal import table

MARK, END = "<!-- matrix -->", "<!-- end of matrix -->"

SIGNS = {"holds": "holds", "differs": "differs", "fails": "FAILS", "not applicable": "n/a", "not tried": "-"}

CHANGED = "*"
"""After a cell that is not what was recorded."""

INLINE, LENGTH = 28, 160
"""Characters: up to the first a value is shown in its cell; a longer one is below the table, cut to the second."""


def matrix_lines(matrix: Matrix, recorded: Matrix | None, *, everything: bool = False) -> Iterator[str]:
    """The matrix, the values that are not as documented, and what changed against the recorded one."""
    changed = _changed(matrix, recorded)
    names = [column.name for column in matrix.columns]
    yield from table([("transformers", *names), *_besides(matrix)])
    for kind, title in KINDS.items():
        rows, summary = _shown(matrix, kind, everything)
        if not rows and not summary:
            continue
        yield ""
        yield f"{title}:"
        notes: dict[str, int] = {}
        lines = [(row.title, *(_sign(row, name, changed, notes) for name in names)) for row in rows]
        if lines:
            yield from (f"  {line}" for line in table(lines))
        yield from (f"  {line}" for line in summary)
        yield from (f"    ({number}) {note}" for note, number in notes.items())
    yield ""
    yield from changed_lines(matrix, recorded)


def changed_lines(matrix: Matrix, recorded: Matrix | None) -> Iterator[str]:
    if recorded is None:
        yield "no matrix was recorded: nothing is compared"
        return
    changes, known = list(matrix.changed(recorded)), matrix.compared(recorded)
    for column in matrix.columns:
        if column.name not in known:
            yield f"not compared: {column.name}, which was not recorded with these libraries"
    if known:
        yield f"{len(changes)} cells are not what was recorded" if changes else "every cell is as recorded"
    for change in changes:
        now = _format_cell(change.now) if change.now else "gone"
        yield f"  {change.row.title} on {change.column}: was {_format_cell(change.before)}, is {now}"


def _changed(matrix: Matrix, recorded: Matrix | None) -> set[tuple[str, str]]:
    """Row and column of the cells that changed; of a check with and without its loops, as it is shown."""
    return {(each.row.id.partition(" [")[0], each.column) for each in (matrix.changed(recorded) if recorded else ())}


def _besides(matrix: Matrix) -> list[tuple[str, ...]]:
    return [(name, *(column.libraries.get(name) or "-" for column in matrix.columns)) for name in BESIDES]


def _shown(matrix: Matrix, kind: Kind, everything: bool) -> tuple[list[Row], list[str]]:
    """The rows of a kind that say something, and what the others come to."""
    rows = [row for row in merged(matrix.rows) if row.kind == kind]
    shown = [row for row in rows if everything or row.varies]
    left = [row for row in rows if not everything and not row.varies]
    stopped: Counter[str] = Counter()
    for row in left:
        stopped.update(column for column, cell in row.cells.items() if cell.outcome == "not tried")
    summary = (
        [f"{len(left)} {'more ' if shown else ''}as documented, or not applicable, on all versions"] if left else []
    )
    summary += [f"of these {count} not tried on {column}: a run stopped before" for column, count in stopped.items()]
    return shown, summary


def _sign(row: Row, column: str, changed: set[tuple[str, str]], notes: dict[str, int]) -> str:
    cell = row.cell(column)
    sign = SIGNS[cell.outcome] + (CHANGED if (row.id.partition(" [")[0], column) in changed else "")
    if cell.value is None or cell.outcome not in ("differs", "fails"):
        return sign
    if len(cell.value) <= INLINE:
        return f"{sign}: {cell.value}"
    return f"{sign} ({notes.setdefault(_on_a_line(cell.value), len(notes) + 1)})"


def _on_a_line(value: str) -> str:
    return shortened(" ".join(value.split()), LENGTH)


def _format_cell(cell: Cell) -> str:
    return f"{cell.outcome} ({_on_a_line(cell.value)})" if cell.value else cell.outcome


def markdown_lines(matrix: Matrix, recorded: Matrix | None, *, everything: bool = False) -> Iterator[str]:
    """The same as Markdown; values below the tables."""
    changed = _changed(matrix, recorded)
    names = [column.name for column in matrix.columns]
    yield from _markdown_table(("transformers", *names), _besides(matrix))
    for kind, title in KINDS.items():
        rows, summary = _shown(matrix, kind, everything)
        if not rows and not summary:
            continue
        notes: dict[str, int] = {}
        lines = [(_title(row), *(_escaped(_sign(row, name, changed, notes)) for name in names)) for row in rows]
        yield ""
        if lines:
            yield from _markdown_table((title, *names), lines)
            yield ""
        if summary:
            yield f"{title}: {'; '.join(summary)}."
        if notes:
            yield ""
            yield from (f"{number}. {_escaped(note)}" for note, number in notes.items())


def _title(row: Row) -> str:
    if row.kind in ("library", "difference"):
        return _escaped(row.title)
    name, _, places = row.title.partition(" (" if row.kind in ("code", "output") else " [")
    return _escaped(f"`{name}`") + (f" ({places.rstrip(')]')})" if places else "")


def _escaped(text: str) -> str:
    """Markdown for a text in which some parts are between backticks, which stay as they are."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(
        part.replace("|", r"\|") if part.startswith("`") else re.sub(r"([|<*_\[\]])", r"\\\1", part) for part in parts
    )


def _markdown_table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{' --- |' * len(head)}"
    yield from (f"| {' | '.join(row)} |" for row in rows)


def write_markdown(path: Path, lines: Iterator[str]) -> None:
    """Between the marks of a file that has them, or as a new file.

    Raises:
        CannotTry: there is a file without both marks, which is never overwritten, or one that is no text.
    """
    text = "\n".join(lines) + "\n"
    if path.exists():
        try:
            before, mark, rest = path.read_text(encoding="utf-8").partition(MARK)
        except (OSError, UnicodeDecodeError) as error:
            raise CannotTry(f"{path} cannot be read ({error}); choose another file for --markdown") from error
        _, end, after = rest.partition(END)
        if not mark or not end:
            raise CannotTry(f"{path} is there and has not both lines {MARK} and {END}; choose another file")
    else:
        before, after = "", "\n"
    write_atomically(path, f"{before}{MARK}\n{text}{END}{after}")
