"""The matrix over versions, for the terminal and as Markdown."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.documented_run.matrix import BESIDES, KINDS, Cell, Comparison, Kind, Matrix, Row, merged
from harness.errors import CannotTry
from harness.files import write_atomically
from harness.findings import shortened
from harness.report.terminal import table

MARK, END = "<!-- matrix -->", "<!-- end of matrix -->"

SIGNS = {"holds": "holds", "differs": "differs", "fails": "FAILS", "not applicable": "n/a", "not tried": "-"}

CHANGED = "*"
"""After a cell that is not what was recorded."""

INLINE, LENGTH = 28, 160
"""Characters: up to the first a value is shown in its cell; a longer one is below the table, cut to the second."""


@dataclass(frozen=True)
class _Part:
    """The rows of one kind as they are shown."""

    kind: Kind
    rows: list[tuple[Row, list[str]]]
    """Each with its cells."""
    notes: dict[str, int]
    """Values that are too long for a cell, with the number that the cell has instead."""
    summary: list[str]
    """What the rows that are left out come to."""


def _parts(matrix: Matrix, comparison: Comparison | None, everything: bool) -> Iterator[_Part]:
    changes = comparison.changes if comparison else ()
    # Of a check with and without its loops, as it is shown.
    changed = {(each.row.kind, each.row.subject, each.column) for each in changes}
    for kind in KINDS:
        rows, summary = _shown(matrix, kind, everything)
        if not rows and not summary:
            continue
        notes: dict[str, int] = {}
        signs = [
            [_sign(row.cell(each.name), (kind, row.subject, each.name) in changed, notes) for each in matrix.columns]
            for row in rows
        ]
        yield _Part(kind, list(zip(rows, signs, strict=True)), notes, summary)


def matrix_lines(matrix: Matrix, comparison: Comparison | None, *, everything: bool = False) -> Iterator[str]:
    """The matrix, the values that are not as documented, and what changed against the recorded one.

    A check has its claim's sentence below it.
    """
    yield from table(_versions(matrix))
    for part in _parts(matrix, comparison, everything):
        yield ""
        yield f"{KINDS[part.kind][0]}:"
        checks = part.kind == "check"
        heads = [(row.title,) if checks else (row.summary, row.documented or "") for row, _ in part.rows]
        lines = table([(*head, *signs) for head, (_, signs) in zip(heads, part.rows, strict=True)])
        for (row, _), line in zip(part.rows, lines, strict=True):
            yield f"  {line}"
            if checks:
                yield f"      {row.summary}"
        yield from (f"  {line}" for line in part.summary)
        yield from (f"    ({number}) {note}" for note, number in part.notes.items())
    yield ""
    yield from _comparison_lines(matrix, comparison)


def _comparison_lines(matrix: Matrix, comparison: Comparison | None) -> Iterator[str]:
    if comparison is None:
        yield "no matrix was recorded: nothing is compared"
        return
    for column in matrix.columns:
        if column.name not in comparison.compared:
            yield f"not compared: {column.name}, which was not recorded with these libraries"
    changes = comparison.changes
    if comparison.compared:
        yield f"{len(changes)} cells differ from what was recorded" if changes else "every cell is as recorded"
    for change in changes:
        now = _format_cell(change.now) if change.now else "gone"
        yield f"  {change.row.title} on {change.column}: was {_format_cell(change.before)}, is {now}"


def _versions(matrix: Matrix) -> list[tuple[str, ...]]:
    """What each column is of, with its name on top."""
    names = ("transformers", *(column.name for column in matrix.columns))
    return [names, *((name, *(column.libraries.get(name) or "-" for column in matrix.columns)) for name in BESIDES)]


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
    summary += [f"{count} of these not tried on {column}: a run stopped earlier" for column, count in stopped.items()]
    return shown, summary


def _sign(cell: Cell, changed: bool, notes: dict[str, int]) -> str:
    sign = SIGNS[cell.outcome] + (CHANGED if changed else "")
    if cell.value is None or cell.outcome not in ("differs", "fails"):
        return sign
    if len(cell.value) <= INLINE:
        return f"{sign}: {cell.value}"
    return f"{sign} ({notes.setdefault(_on_a_line(cell.value), len(notes) + 1)})"


def _on_a_line(value: str) -> str:
    return shortened(" ".join(value.split()), LENGTH)


def _format_cell(cell: Cell) -> str:
    return f"{cell.outcome} ({_on_a_line(cell.value)})" if cell.value else cell.outcome


def markdown_lines(matrix: Matrix, comparison: Comparison | None, *, everything: bool = False) -> Iterator[str]:
    """The same as Markdown; values below the tables."""
    head, *versions = _versions(matrix)
    yield from markdown_table(head, versions)
    for part in _parts(matrix, comparison, everything):
        title, beside = KINDS[part.kind]
        yield ""
        if part.rows:
            lines = [(*_titles(row), *map(_escaped, signs)) for row, signs in part.rows]
            yield from markdown_table((title, beside, *head[1:]), lines)
            yield ""
        if part.summary:
            yield f"{title}: {'; '.join(part.summary)}."
        if part.notes:
            yield ""
            yield from (f"{number}. {_escaped(note)}" for note, number in part.notes.items())


def _titles(row: Row) -> tuple[str, str]:
    """A row's summary, and what is beside it; ids and code in code font."""
    if row.kind == "check":
        return _escaped(row.summary), _escaped(f"`{row.subject}`") + (f" ({row.loop})" if row.loop else "")
    summary = f"`{row.summary}`" if row.kind in ("code", "output") else row.summary
    return _escaped(summary), _escaped(row.documented or "")


def _escaped(text: str) -> str:
    """Markdown for a text in which some parts are between backticks, which stay as they are."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(
        part.replace("|", r"\|") if part.startswith("`") else re.sub(r"([|<*_\[\]])", r"\\\1", part) for part in parts
    )


def markdown_table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{' --- |' * len(head)}"
    yield from (f"| {' | '.join(row)} |" for row in rows)


def write_markdown(path: Path, lines: Iterable[str], marks: tuple[str, str] = (MARK, END)) -> None:
    """Between the marks of a file that has them, or as a new file.

    Raises:
        CannotTry: there is a file without both marks, which is never overwritten, or one that is no text.
    """
    begin, end = marks
    text = "\n".join(lines) + "\n"
    if path.exists():
        try:
            before, found, rest = path.read_text(encoding="utf-8").partition(begin)
        except (OSError, UnicodeDecodeError) as error:
            raise CannotTry(f"{path} cannot be read ({error}); choose another file for --markdown") from error
        _, ended, after = rest.partition(end)
        if not found or not ended:
            raise CannotTry(f"{path} exists and lacks the line {begin} or {end}; choose another file")
    else:
        before, after = "", "\n"
    write_atomically(path, f"{before}{begin}\n{text}{end}{after}")
