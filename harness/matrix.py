"""Claims and checks on one side, library versions on the other: what run records say of each pair."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from harness.compat import FACTS
from harness.errors import CannotTry
from harness.record import BlockRecord, CheckRecord, DocumentsRecord, RunRecord, _Part, write_atomically

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


class Cell(_Part):
    """How a row came out on one set of versions; ``value`` is what was found where that is not what is documented."""

    outcome: CellOutcome
    value: str | None = None


class Column(_Part):
    """One set of library versions."""

    name: str
    libraries: dict[str, str | None]


class Row(_Part):
    id: str
    kind: Kind
    says: str
    cells: dict[str, Cell]
    """By column; "not tried" where there is none."""

    def cell(self, column: str) -> Cell:
        return self.cells.get(column, Cell(outcome="not tried"))

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


class Matrix(_Part):
    """Schema 1 of baselines/matrix.json."""

    schema_: Literal[1] = 1
    columns: list[Column]
    rows: list[Row]

    def row(self, name: str) -> Row | None:
        return next((row for row in self.rows if row.id == name), None)

    def changed(self, recorded: Matrix) -> list[tuple[Row, str, Cell]]:
        """The cells that are not what was recorded: row, column, and the recorded cell.

        A row or column that one of the two does not have is not compared.
        """
        known = {column.name for column in recorded.columns}
        found = []
        for row in self.rows:
            before = recorded.row(row.id)
            for column in self.columns:
                if before is None or column.name not in known or column.name not in before.cells:
                    continue
                if column.name in row.cells and row.cells[column.name] != before.cells[column.name]:
                    found.append((row, column.name, before.cells[column.name]))
        return found

    def write(self, path: Path) -> None:
        write_atomically(path, self.model_dump_json(indent=1, by_alias=True, exclude_none=True) + "\n")

    @classmethod
    def read(cls, path: Path) -> Matrix:
        """Read a recorded matrix.

        Raises:
            CannotTry: it is no matrix of this schema.
        """
        try:
            return cls.model_validate_json(path.read_bytes())
        except (OSError, ValidationError) as error:
            raise CannotTry(f"{path} is no recorded matrix ({_first(error)}); write it again with --json") from error


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
    try:
        return DocumentsRecord.model_validate_json(file.read_bytes())
    except (OSError, ValidationError) as error:
        raise CannotTry(f"{file} is no record of documents ({_first(error)}); run harness documents again") from error


def _first(error: OSError | ValidationError) -> str:
    if isinstance(error, OSError):
        return str(error.strerror)
    first = error.errors()[0]
    return f"{'.'.join(map(str, first['loc'])) or 'file'}: {first['msg']}"


def matrix_of(records: Iterable[RunRecord | DocumentsRecord]) -> Matrix:
    """The matrix of some records. Of several records of one loop on the same versions, the last one counts."""
    columns: dict[str, Column] = {}
    rows: dict[str, Row] = {}

    def put(column: str, kind: Kind, name: str, says: str, cell: Cell) -> None:
        row = rows.setdefault(name, Row(id=name, kind=kind, says=says, cells={}))
        row.cells[column] = cell

    records = list(records)
    names = column_names([record.fingerprint["libraries"] for record in records])
    for record, column in zip(records, names, strict=True):
        libraries = record.fingerprint["libraries"]
        versions = {name: libraries.get(name) for name in ("transformers", *BESIDES)}
        columns.setdefault(column, Column(name=column, libraries=versions))
        for kind, name, says, cell in _entries(record):
            put(column, kind, name, says, cell)
    for record, column in zip(records, names, strict=True):
        for row in rows.values():
            if column not in row.cells and (cell := _silent(record, row)):  # type: ignore[assignment]
                row.cells[column] = cell
    ordered = sorted(columns.values(), key=lambda each: _as_numbers(each.name))
    merged = list(_merged(rows.values()))
    return Matrix(columns=ordered, rows=sorted(merged, key=lambda row: list(KINDS).index(row.kind)))


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


def _of_check(check: CheckRecord, record: RunRecord) -> Cell:
    if check.outcome != "fails":
        return Cell(outcome=check.outcome)
    finding = next(each for each in record.findings if each.check == check.check)
    return Cell(outcome="fails", value=finding.observed)


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


def _agree(one: Row, other: Row) -> bool:
    """Whether two rows say the same wherever both say something."""
    return all(one.cells[column] == other.cells[column] for column in one.cells.keys() & other.cells.keys())


def _merged(rows: Iterable[Row]) -> Iterator[Row]:
    """The rows; those of one check that came out alike with every loop are one."""
    checks: dict[str, list[Row]] = {}
    for row in rows:
        if row.kind != "check":
            yield row
        else:
            checks.setdefault(row.id.partition(" [")[0], []).append(row)
    for check, of_loops in checks.items():
        apart: list[Row] = []
        applies = [row for row in of_loops if any(c.outcome != "not applicable" for c in row.cells.values())]
        for row in applies or of_loops[:1]:
            same = next((each for each in apart if _agree(each, row)), None)
            if same is None:
                apart.append(row)
            else:
                same.id = same.id.removesuffix("]") + f", {row.id.partition(' [')[2]}"
                same.cells |= row.cells
        for row in apart:
            yield row.model_copy(update={"id": check}) if len(apart) == 1 else row
