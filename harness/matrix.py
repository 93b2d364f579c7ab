"""Claims and checks on one side, library versions on the other: what run records say of each pair."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from harness.compat import FACTS
from harness.errors import CannotTry
from harness.files import StrictModel, read_model, write_atomically
from harness.findings import CheckOutcome
from harness.record import BlockRecord, DocumentsRecord, RunRecord

DOCUMENTS_FILE = "documents.json"

CellOutcome = Literal["holds", "differs", "fails", "not applicable", "not tried"]
Kind = Literal["library", "check", "difference", "code", "output"]

KINDS: dict[Kind, str] = {
    "library": "What the documents rely on",
    "check": "Claims and checks",
    "difference": "Where Trainer is not the loop by hand",
    "code": "The documents' code, as printed",
    "output": "What it prints",
}
"""The parts of a matrix, in order."""

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
    """``id`` names a check with its loop, a difference, a library's fact, or a piece of code by its hash."""

    id: str
    kind: Kind
    says: str
    cells: dict[str, Cell]
    """By column; none where no record is about it."""

    def cell(self, column: str) -> Cell:
        return self.cells.get(column, Cell(outcome="not tried"))

    @property
    def group(self) -> str:
        """What must have been recorded for the row to have a cell: a kind, for checks of one loop."""
        return self.kind + self.id.partition(" [")[2]

    @property
    def title(self) -> str:
        """What a reader knows it by."""
        if self.kind == "check":
            return self.id
        return self.id.removeprefix("difference::") if self.kind == "difference" else self.says

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


class Matrix(StrictModel):
    """Schema 1 of baselines/matrix.json."""

    schema_: Literal[1] = Field(default=1, alias="schema")
    columns: list[Column]
    rows: list[Row]

    def compared(self, recorded: Matrix) -> dict[str, str]:
        """The columns whose libraries a recorded column has, with that column's name."""
        there = {column.key: column.name for column in recorded.columns}
        return {column.name: there[column.key] for column in self.columns if column.key in there}

    def changed(self, recorded: Matrix) -> Iterator[Change]:
        """The cells that are not what was recorded, those that vanished included.

        A column with other libraries is not compared, nor what no record was given for: the documents' code, a loop.
        Long decimals are not compared: they are another machine's.
        """
        rows = {row.id: row for row in self.rows}
        for column, recorded_column in self.compared(recorded).items():
            given = {row.group for row in self.rows if column in row.cells}
            for before in recorded.rows:
                if recorded_column not in before.cells or before.group not in given:
                    continue
                now = rows.get(before.id)
                cell = now.cells.get(column) if now else None
                if cell is None or cell.comparable != before.cells[recorded_column].comparable:
                    yield Change(now or before, column, before.cells[recorded_column], cell)

    def write(self, path: Path) -> None:
        write_atomically(path, self.model_dump_json(indent=1, by_alias=True, exclude_none=True) + "\n")

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
            raise CannotTry(f"{path} not found; give run records (run.json, documents.json), or folders with them")
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


def matrix_of(records: Sequence[RunRecord | DocumentsRecord]) -> Matrix:
    """The matrix of some records. Of several records of one loop on the same versions, the last one counts.

    Raises:
        CannotTry: they are of several recipes, or a record lacks what every run writes.
    """
    recipes = {str(record.recipe.get("name")) for record in records if isinstance(record, RunRecord)}
    if len(recipes) > 1:
        raise CannotTry(f"runs of several recipes ({', '.join(sorted(recipes))}); give those of one")
    try:
        names = column_names([record.fingerprint["libraries"] for record in records])
        last = {(column, _about(record)): record for record, column in zip(records, names, strict=True)}
        entries = {key: list(_entries(record)) for key, record in last.items()}
    except (KeyError, AttributeError) as error:
        raise CannotTry(f"a record lacks {error}; make it again") from error
    columns: dict[str, Column] = {}
    rows: dict[str, Row] = {}
    for (column, about), record in last.items():
        libraries = record.fingerprint["libraries"]
        versions = {name: libraries.get(name) for name in ("transformers", *BESIDES)}
        columns.setdefault(column, Column(name=column, libraries=versions))
        for kind, name, says, cell in entries[column, about]:
            row = rows.setdefault(name, Row(id=name, kind=kind, says=says, cells={}))
            row.cells[column] = cell
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
    for each in libraries:
        alike = [other for other in libraries if other["transformers"] == each["transformers"]]
        apart = [name for name in BESIDES if len({other.get(name) for other in alike}) > 1]
        names.append(", ".join([str(each["transformers"]), *(f"{name} {each.get(name)}" for name in apart)]))
    return names


def _as_numbers(name: str) -> list[int]:
    return [int(part) for part in name.replace(",", ".").replace(" ", ".").split(".") if part.isdigit()]


def _entries(record: RunRecord | DocumentsRecord) -> Iterator[tuple[Kind, str, str, Cell]]:
    if isinstance(record, DocumentsRecord):
        for key in dict.fromkeys(block.key for block in record.blocks):
            yield from _of_blocks([block for block in record.blocks if block.key == key])
        return
    for name, found in record.facts.items():
        fact = FACTS.get(name)
        says, documented = (fact.says, fact.documents) if fact else (name, found)
        holds = documented in found.split(", ")
        cell = Cell(outcome="holds") if holds else Cell(outcome="differs", value=found)
        yield "library", f"library::{name}", f"{says} {documented}", cell
    loop = _loop(record)
    for check in record.checks:
        yield "check", f"{check.check} [{loop}]", check.claim, _of_check(check, record)
    for difference in record.differences:
        same = difference.there == difference.by_hand
        cell = Cell(outcome="holds") if same else Cell(outcome="differs", value=difference.there)
        yield "difference", f"difference::{difference.what}", f"as by hand: {difference.by_hand}", cell


def _silent(record: RunRecord | DocumentsRecord, row: Row) -> Cell | None:
    """What it means that a record says nothing of a row; None where the row is not about it."""
    if isinstance(record, DocumentsRecord):
        return None
    if row.kind == "check" and row.id.endswith(f" [{_loop(record)}]"):
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
    found = {each.check: each.observed for each in record.findings}
    return Cell(outcome="fails", value=found[check.check])


def _of_blocks(blocks: Sequence[BlockRecord]) -> Iterator[tuple[Kind, str, str, Cell]]:
    """The rows of one piece of code, which several documents may have: as it went where it went worst."""
    block = min(blocks, key=lambda each: WORST_FIRST.index(each.outcome))
    name = f"code::{block.key}"
    says = f"{block.label} ({', '.join(f'{each.document}:{each.number}' for each in blocks)})"
    if block.outcome == "not applicable":
        yield "code", name, says, Cell(outcome="not applicable", value=block.says)
        return
    if block.outcome == "fails":
        helps = f"write {block.replacement}" if block.repaired and block.replacement else "no remedy known"
        yield "code", name, says, Cell(outcome="fails", value=f"{helps} ({block.says})")
    elif block.outcome == "deprecated":
        yield "code", name, says, Cell(outcome="differs", value=f"deprecated: {block.says}")
    else:
        yield "code", name, says, Cell(outcome="holds")
    shown = [each for each in blocks if each.shows_output]
    if shown:
        otherwise = next((each.prints for each in shown if each.prints is not None), None)
        cell = Cell(outcome="holds") if otherwise is None else Cell(outcome="differs", value=otherwise or "nothing")
        yield "output", f"output::{block.key}", says, cell


def merged(rows: Iterable[Row]) -> Iterator[Row]:
    """The rows to be shown: those of one check that came out alike with every loop are one."""
    checks: dict[str, list[Row]] = {}
    for row in rows:
        if row.kind != "check":
            yield row
        else:
            checks.setdefault(row.id.partition(" [")[0], []).append(row)
    for check, of_loops in checks.items():
        applies = [row for row in of_loops if any(c.outcome != "not applicable" for c in row.cells.values())]
        apart: list[Row] = []
        for row in applies or of_loops[:1]:
            same = next((each for each in apart if _agree(each, row)), None)
            if same is None:
                apart.append(row.model_copy(deep=True))
            else:
                same.id = same.id.removesuffix("]") + f", {row.id.partition(' [')[2]}"
                same.cells |= row.cells
        for row in apart:
            yield row.model_copy(update={"id": check}) if len(apart) == 1 else row


def _agree(one: Row, other: Row) -> bool:
    """Whether two rows say the same wherever both say something."""
    return all(one.cells[column] == other.cells[column] for column in one.cells.keys() & other.cells.keys())
