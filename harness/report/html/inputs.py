"""What a report is made from: files, told apart by what they hold."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from harness.baseline.instructions import Instructions
from harness.baseline.stored import Baseline
from harness.baseline.throughput import Throughput
from harness.errors import CannotTry
from harness.files import first_error, read_model
from harness.matrix import DOCUMENTS_FILE, Matrix
from harness.record import FILE_NAME, DocumentsRecord, RunRecord

AGAIN = "make it again with this version"

STORED: tuple[tuple[frozenset[str], type[Any], str], ...] = (
    (frozenset({"recipe", "curves"}), RunRecord, "run record"),
    (frozenset({"blocks"}), DocumentsRecord, "record of documents"),
    (frozenset({"columns", "rows"}), Matrix, "recorded matrix"),
    (frozenset({"hardware", "recipe", "runs"}), Baseline, "baseline"),
    (frozenset({"hardware", "workload", "runs"}), Instructions, "baseline"),
    (frozenset({"hardware", "runs"}), Throughput, "baseline"),
)
"""Files that are kept: the keys that tell them, and what they are. The first that fits is meant."""

EXPECTED = (
    "run.json or documents.json, or the folder that one lies in; the --json of harness check, compare, resume or "
    "tokens; a matrix; a baseline"
)


@dataclass(frozen=True)
class Input:
    """A file, and what it holds."""

    path: Path
    content: Any
    """A RunRecord, DocumentsRecord, Matrix, Baseline, Throughput, Instructions, CheckReport, CompareReport,
    ResumeReport or TaughtReport."""


def read_inputs(paths: Sequence[Path]) -> list[Input]:
    """What the files hold; of a folder the records in it. A file that is given twice is there once.

    Raises:
        CannotTry: one of them is not there, is broken, or is nothing that a report shows.
    """
    files = dict.fromkeys(file for path in paths for file in _files(path))
    return [Input(file, _content(file)) for file in files]


def _files(path: Path) -> Iterator[Path]:
    if not path.is_dir():
        yield path
        return
    found = [file for name in (FILE_NAME, DOCUMENTS_FILE) if (file := path / name).exists()]
    if not found:
        raise CannotTry(f"there is no {FILE_NAME} and no {DOCUMENTS_FILE} in folder {path}; expected {EXPECTED}")
    yield from found


def _content(path: Path) -> Any:
    keys = _keys(path)
    for telling, model, what in STORED:
        if telling <= keys.keys():
            return read_model(path, model, what, AGAIN)
    if report := _report_of(keys):
        return _read_report(path, report, keys)
    raise CannotTry(f"{path} is nothing that a report shows; expected {EXPECTED}")


def _keys(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_bytes())
    except FileNotFoundError as error:
        raise CannotTry(f"{path} not found; expected {EXPECTED}") from error
    except OSError as error:
        raise CannotTry(f"{path} cannot be read ({error.strerror})") from error
    except (ValueError, RecursionError) as error:
        raise CannotTry(f"{path} is no JSON; expected {EXPECTED}") from error
    return found if isinstance(found, dict) else {}


def _report_of(keys: Collection[str]) -> type[Any] | None:
    """What a command writes with ``--json``, by the keys that tell it."""
    if {"script", "kills"} <= set(keys):
        from harness.resume.run import ResumeReport

        return ResumeReport
    if {"script", "held"} <= set(keys):
        from harness.watch.script import CheckReport

        return CheckReport
    if {"a", "b", "differences"} <= set(keys):
        from harness.compare.differences import CompareReport

        return CompareReport
    if {"script", "rows_seen"} <= set(keys):
        from harness.watch.teaching import TaughtReport

        return TaughtReport
    return None


def _read_report(path: Path, report: type[Any], found: dict[str, Any]) -> Any:
    if found.get("schema") != 1:
        raise CannotTry(f"{path}: schema is {found.get('schema')!r}, expected 1 (of a newer harness?); {AGAIN}")
    try:
        return TypeAdapter(report).validate_python(found)
    except ValidationError as error:
        raise CannotTry(f"{path}: {first_error(error)}; {AGAIN}") from error
