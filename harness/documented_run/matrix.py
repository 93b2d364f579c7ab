"""Claims and checks on one side, library versions on the other: what run records say of each pair."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from harness.compat import FACTS, without_colours
from harness.documented_run.record import BlockRecord, DocumentsRecord, RunRecord
from harness.errors import CannotTry
from harness.files import StrictModel, read_model, write_atomically
from harness.findings import CheckOutcome

DOCUMENTS_FILE = "documents.json"

CellOutcome = Literal["holds", "differs", "fails", "not applicable", "not tried"]
Kind = Literal["library", "check", "difference", "code", "output"]

KINDS: dict[Kind, tuple[str, str]] = {
    "library": ("What the documents rely on", "documented"),
    "check": ("Claims and checks", "check"),
    "difference": ("Where Trainer differs from the plain loop", "by hand"),
    "code": ("The documents' code, as printed", "where"),
    "output": ("What it prints", "where"),
}
"""The parts of a matrix, in order: the title, and what is beside a row's summary."""

WORST_FIRST = ("fails", "deprecated", "runs", "not applicable")

BESIDES = ("accelerate", "datasets", "huggingface-hub", "evaluate", "tokenizers", "torch")
"""The libraries that a column tells beside transformers."""


class Cell(StrictModel):
    """How a row came out on one set of versions; ``value`` is what was found where that is not what is documented."""

    outcome: CellOutcome
    value: str | None = None

    @property
    def comparable(self) -> tuple[str, str]:
        return self.outcome, re.sub(r"\d+\.\d{4,}(e[+-]?\d+)?", "...", self.value or "")


class Column(StrictModel):
    """One set of library versions."""

    name: str
    libraries: dict[str, str | None]

    @property
    def key(self) -> tuple[str, ...]:
        """Equal for equal versions, whichever build of torch."""
        return tuple(str(self.libraries.get(name)).partition("+")[0] for name in ("transformers", *BESIDES))


class Row(StrictModel):
    """One thing that versions are compared by."""

    kind: Kind
    subject: str
    """The id of a library's fact or of a check, the name of a difference, the hash of a piece of code."""
    loop: str | None = None
    """Loop of a check, with the number of processes, whose runs the cells are of."""
    summary: str
    """What a reader knows it by; of a check the sentence of the claim or invariant that it stands for."""
    documented: str | None = None
    """What the documents have: a fact's value, that of the loop by hand, the document and number of each block."""
    cells: dict[str, Cell] = Field(default_factory=dict)
    """Cells by column; none where no record is about it."""

    def cell(self, column: str) -> Cell:
        return self.cells.get(column, Cell(outcome="not tried"))

    @property
    def key(self) -> tuple[str, str, str | None]:
        return self.kind, self.subject, self.loop

    @property
    def group(self) -> tuple[str, str | None]:
        """What must have been recorded for the row to have a cell: a kind, for checks of one loop."""
        return self.kind, self.loop

    @property
    def title(self) -> str:
        """What a line of text calls it."""
        if self.kind == "check":
            return f"{self.subject} [{self.loop}]" if self.loop else self.subject
        return f"{self.summary} ({self.documented})" if self.kind in ("code", "output") else self.summary

    @property
    def varies(self) -> bool:
        """Whether it says anything but that all is as documented."""
        return any(cell.outcome in ("differs", "fails") for cell in self.cells.values())


@dataclass(frozen=True)
class Change:
    """A cell that is not what was recorded; None where there is none any more."""

    row: Row
    column: str
    before: Cell
    now: Cell | None


@dataclass(frozen=True)
class Comparison:
    """A matrix against the recorded one."""

    changes: tuple[Change, ...]
    compared: tuple[str, ...]
    """The columns whose libraries a recorded column has; the others are not compared."""


class Matrix(StrictModel):
    """Schema 2 of baselines/matrix.json."""

    schema_: Literal[2] = Field(default=2, alias="schema")
    kind: Literal["matrix"] = "matrix"
    columns: list[Column]
    rows: list[Row]

    def against(self, recorded: Matrix) -> Comparison:
        """What changed since a matrix was recorded."""
        there = {column.key: column.name for column in recorded.columns}
        known = {column.name: there[column.key] for column in self.columns if column.key in there}
        return Comparison(tuple(self._changed(recorded, known)), tuple(known))

    def _changed(self, recorded: Matrix, known: Mapping[str, str]) -> Iterator[Change]:
        """The cells that are not what was recorded, those that vanished included.

        Nothing is compared that no record was given for: the documents' code, a loop. Nor are long decimals: they are
        another machine's. ``known`` maps the columns that are compared to the names of the recorded ones.
        """
        rows = {row.key: row for row in self.rows}
        for column, recorded_column in known.items():
            given = {row.group for row in self.rows if column in row.cells}
            for before in recorded.rows:
                if recorded_column not in before.cells or before.group not in given:
                    continue
                now = rows.get(before.key)
                cell = now.cells.get(column) if now else None
                if cell is None or cell.comparable != before.cells[recorded_column].comparable:
                    yield Change(now or before, column, before.cells[recorded_column], cell)

    def beside(self, recorded: Matrix) -> Matrix:
        """This matrix with the recorded columns whose versions it has none of.

        A row is worded as here. Of a row that is here alone, the recorded versions were not tried.
        """
        mine = {column.key for column in self.columns}
        kept = [column for column in recorded.columns if column.key not in mine]
        names = {column.name for column in kept}
        rows = {row.key: row.model_copy(update={"cells": dict(row.cells)}) for row in self.rows}
        for row in recorded.rows:
            cells = {name: cell for name, cell in row.cells.items() if name in names}
            if cells:
                rows.setdefault(row.key, row.model_copy(update={"cells": {}})).cells.update(cells)
        differences = [row for row in rows.values() if row.kind == "difference"]
        for name in {name for row in self.rows if row.kind == "difference" for name in row.cells}:
            for row in differences:  # of those that a record does not list there is none
                row.cells.setdefault(name, Cell(outcome="holds"))
        return Matrix(
            columns=sorted([*kept, *self.columns], key=lambda each: _as_numbers(each.name)),
            rows=sorted(rows.values(), key=lambda row: list(KINDS).index(row.kind)),
        )

    def as_json(self) -> str:
        return self.model_dump_json(indent=1, by_alias=True, exclude_none=True) + "\n"

    def write(self, path: Path) -> None:
        write_atomically(path, self.as_json())

    @classmethod
    def read(cls, path: Path) -> Matrix:
        """Read a recorded matrix.

        Raises:
            CannotTry: it is no matrix of this schema.
        """
        return read_model(path, cls, "recorded matrix", "write it again with --json")


def records_below(paths: Sequence[Path]) -> list[RunRecord | DocumentsRecord]:
    """The run records in files and folders, however deep: run.json and documents.json.

    Raises:
        CannotTry: there is none, or one is broken.
    """
    files: list[Path] = []
    for path in paths:
        if not path.exists():
            raise CannotTry(
                f"{path} not found; give run records (run.json, documents.json), or folders that contain them"
            )
        if path.is_dir():
            files += sorted([*path.rglob("run.json"), *path.rglob(DOCUMENTS_FILE)])
        else:
            files.append(path)
    if not files:
        raise CannotTry(f"no run.json or documents.json in {', '.join(map(str, paths))}; harness run leaves them")
    return [_read(file) for file in files]


def _read(file: Path) -> RunRecord | DocumentsRecord:
    if file.name != DOCUMENTS_FILE:
        return RunRecord.read(file)
    return read_model(file, DocumentsRecord, "record of documents", "run harness documents again")


def matrix_of(records: Sequence[RunRecord | DocumentsRecord], sentences: Mapping[str, str]) -> Matrix:
    """The matrix of some records. Of several records of one loop on the same versions, the last one counts.

    ``sentences`` are those of claims and invariants, by id; one that is not among them is shown by its id.

    Raises:
        CannotTry: they are of several recipes, or a record lacks what every run writes.
    """
    recipes = {str(record.recipe.get("name")) for record in records if isinstance(record, RunRecord)}
    if len(recipes) > 1:
        raise CannotTry(f"runs of several recipes ({', '.join(sorted(recipes))}); give runs of one recipe")
    try:
        names = column_names([record.fingerprint["libraries"] for record in records])
        last = {(column, _about(record)): record for record, column in zip(records, names, strict=True)}
        entries = {(column, about): list(_rows(record, column, sentences)) for (column, about), record in last.items()}
    except (KeyError, AttributeError) as error:
        raise CannotTry(f"a record lacks {error}; run it again") from error
    columns: dict[str, Column] = {}
    rows: dict[tuple[str, str, str | None], Row] = {}
    for (column, about), record in last.items():
        libraries = record.fingerprint["libraries"]
        versions = {name: libraries.get(name) for name in ("transformers", *BESIDES)}
        columns.setdefault(column, Column(name=column, libraries=versions))
        for row in entries[column, about]:
            rows.setdefault(row.key, row).cells |= row.cells
    for (column, _), record in last.items():
        for row in rows.values():
            if column not in row.cells and (silence := _silent(record, row)):
                row.cells[column] = silence
    return Matrix(
        columns=sorted(columns.values(), key=lambda each: _as_numbers(each.name)),
        rows=sorted(rows.values(), key=lambda row: list(KINDS).index(row.kind)),
    )


def _about(record: RunRecord | DocumentsRecord) -> str:
    return "documents" if isinstance(record, DocumentsRecord) else _loop(record)


def column_names(libraries: Sequence[dict[str, Any]]) -> list[str]:
    """The version of transformers for each record, with another library's where that tells two apart.

    >>> column_names([{"transformers": "4.40.2", "accelerate": "0.29.3"}, {"transformers": "5.0.0"}])
    ['4.40.2', '5.0.0']
    >>> column_names([{"transformers": "4.40.2", "accelerate": each} for each in ("0.29.3", "0.25.0")])
    ['4.40.2, accelerate 0.29.3', '4.40.2, accelerate 0.25.0']
    """
    names = []
    for library in libraries:
        alike = [other for other in libraries if other["transformers"] == library["transformers"]]
        apart = [name for name in BESIDES if len({other.get(name) for other in alike}) > 1]
        names.append(", ".join([str(library["transformers"]), *(f"{name} {library.get(name)}" for name in apart)]))
    return names


def _as_numbers(name: str) -> list[int]:
    return [int(part) for part in name.replace(",", ".").replace(" ", ".").split(".") if part.isdigit()]


def _rows(record: RunRecord | DocumentsRecord, column: str, sentences: Mapping[str, str]) -> Iterator[Row]:
    """What a record says, each row with its one cell."""
    if isinstance(record, DocumentsRecord):
        for key in dict.fromkeys(block.key for block in record.blocks):
            yield from _of_code([block for block in record.blocks if block.key == key], column)
        return
    for name, found in record.facts.items():
        fact = FACTS.get(name)
        summary, documented = (fact.name, fact.documented) if fact else (name, found)
        cell = _against(documented in found.split(", "), found)
        yield Row(kind="library", subject=name, summary=summary, documented=documented, cells={column: cell})
    for check in record.checks:
        summary = sentences.get(check.claim, check.claim)
        cell = _of_check(check, record)
        yield Row(kind="check", subject=check.check, loop=_loop(record), summary=summary, cells={column: cell})
    for difference in record.differences:
        cell = _against(difference.there == difference.by_hand, difference.there)
        yield Row(
            kind="difference",
            subject=difference.what,
            summary=difference.what,
            documented=difference.by_hand,
            cells={column: cell},
        )


def _against(as_documented: bool, found: str) -> Cell:
    return Cell(outcome="holds") if as_documented else Cell(outcome="differs", value=found)


def _silent(record: RunRecord | DocumentsRecord, row: Row) -> Cell | None:
    """What it means that a record says nothing of a row; None where the row is not about it."""
    if isinstance(record, DocumentsRecord):
        return None
    if row.kind == "check" and row.loop == _loop(record):
        return Cell(outcome="not tried")  # the run ended before
    if row.kind == "difference" and record.differences:
        return Cell(outcome="holds")
    return None


def _loop(record: RunRecord) -> str:
    processes = record.recipe.get("processes", 1)
    return str(record.recipe["loop"]) + (f", {processes} processes" if processes > 1 else "")


def _of_check(check: CheckOutcome, record: RunRecord) -> Cell:
    if check.outcome != "fails":
        return Cell(outcome=check.outcome)
    found = {each.check: without_colours(each.observed) for each in record.findings}
    return Cell(outcome="fails", value=found[check.check])


def _of_code(blocks: Sequence[BlockRecord], column: str) -> Iterator[Row]:
    """The rows of one piece of code, which several documents may have: as it went where it went worst."""
    block = min(blocks, key=lambda each: WORST_FIRST.index(each.outcome))
    places = ", ".join(f"{each.document}:{each.number}" for each in blocks)

    def row(kind: Kind, outcome: CellOutcome, value: str | None = None) -> Row:
        cells = {column: Cell(outcome=outcome, value=value)}
        return Row(kind=kind, subject=block.key, summary=block.label, documented=places, cells=cells)

    if block.outcome == "not applicable":
        yield row("code", "not applicable", block.says)
        return
    if block.outcome == "fails":
        helps = f"write {block.replacement}" if block.repaired and block.replacement else "no remedy known"
        yield row("code", "fails", f"{helps} ({block.says})")
    elif block.outcome == "deprecated":
        yield row("code", "differs", f"deprecated: {block.says}")
    else:
        yield row("code", "holds")
    shown = [each for each in blocks if each.shows_output]
    if shown:
        otherwise = next((each.prints for each in shown if each.prints is not None), None)
        yield row("output", "holds") if otherwise is None else row("output", "differs", otherwise or "nothing")


def merged(rows: Iterable[Row]) -> Iterator[Row]:
    """The rows to be shown: those of one check that came out alike with several loops are one, which names them.

    Where all loops came out alike, none is named.
    """
    checks: dict[str, list[Row]] = {}
    for row in rows:
        if row.kind != "check":
            yield row
        else:
            checks.setdefault(row.subject, []).append(row)
    for of_loops in checks.values():
        applies = [row for row in of_loops if any(c.outcome != "not applicable" for c in row.cells.values())]
        unlike: list[Row] = []
        for row in applies or of_loops[:1]:
            same = next((each for each in unlike if _agree(each, row)), None)
            if same is None:
                unlike.append(row.model_copy(deep=True))
            else:
                same.loop = f"{same.loop}, {row.loop}"
                same.cells |= row.cells
        if len(unlike) == 1:
            unlike[0].loop = None
        yield from unlike


def _agree(one: Row, other: Row) -> bool:
    """Whether two rows say the same wherever both say something."""
    return all(one.cells[column] == other.cells[column] for column in one.cells.keys() & other.cells.keys())
