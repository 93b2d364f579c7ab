"""What a page is made from: the files that commands wrote, and the folders of records.

Each file says in ``kind`` what it is. Those of reports of schema 1, which did not, are told by their keys.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, TypeAdapter, ValidationError

from harness.documented_run.matrix import DOCUMENTS_FILE
from harness.documented_run.record import FILE_NAME
from harness.errors import CannotTry
from harness.files import first_error, read_model
from harness.findings import SCHEMA
from harness.watch import together
from harness.watch.script import NotLookedAt, NotThere

SCHEMAS = (1, 2, SCHEMA)
"""Schema versions of reports that are read."""

AGAIN = "make it again with this version"

KINDS = {
    "check": "harness.watch.script:CheckReport",
    "resume": "harness.resume.run:ResumeReport",
    "compare": "harness.compare.differences:CompareReport",
    "tokens": "harness.watch.teaching:TaughtReport",
    "description": "harness.describe.page:Description",
    "run": "harness.documented_run.record:RunRecord",
    "documents": "harness.documented_run.record:DocumentsRecord",
    "matrix": "harness.documented_run.matrix:Matrix",
    "baseline": "harness.documented_run.baseline.stored:Baseline",
}
"""What is written, by its kind: the class that reads it, imported where it is needed."""

KEYS: dict[str, frozenset[str]] = {
    "run": frozenset({"recipe", "curves"}),
    "documents": frozenset({"blocks"}),
    "matrix": frozenset({"columns", "rows"}),
    "baseline": frozenset({"hardware", "recipe", "runs"}),
    "resume": frozenset({"script", "kills"}),
    "check": frozenset({"script", "held"}),
    "tokens": frozenset({"script", "rows_seen"}),
    "description": frozenset({"script", "lines", "numbers"}),
    "compare": frozenset({"a", "b", "differences"}),
}
"""What tells a file without a kind: the first that fits is meant."""

OTHER_KEYS = ("settings", "scripts", "trainings", "comparison", "baselines", "claims", "citations")
"""What tells a report of which no page is made."""

WHAT = {"run": "run record", "documents": "record of documents", "matrix": "recorded matrix"}
"""What stored files are called."""

EXPECTED = (
    "run.json or documents.json, or the folder that one lies in; the --json of harness check, describe, compare, "
    "resume or tokens; a matrix; a baseline"
)


@dataclass(frozen=True)
class Input:
    """A file, and what it holds: one of the classes of :data:`KINDS`."""

    path: Path
    content: Any


def read_inputs(paths: Sequence[Path]) -> list[Input]:
    """What the files hold; of a folder the records in it. A file that is given twice is there once.

    Raises:
        CannotTry: one of them is not there, is broken, or is nothing that a report shows.
    """
    files = dict.fromkeys(file for path in paths for file in _files(path))
    return [Input(file, _read(file)) for file in files]


def _files(path: Path) -> Iterator[Path]:
    if not path.is_dir():
        yield path
        return
    found = [file for name in (FILE_NAME, DOCUMENTS_FILE) if (file := path / name).exists()]
    if not found:
        raise CannotTry(f"there is no {FILE_NAME} and no {DOCUMENTS_FILE} in folder {path}; expected {EXPECTED}")
    yield from found


def kind_of(content: Mapping[str, Any]) -> str | None:
    """What a file holds that a command wrote; None where no command writes such files."""
    if "kind" in content:
        return content["kind"] if content["kind"] in KINDS else None
    return next((kind for kind, keys in KEYS.items() if keys <= content.keys()), None)


def is_report(text: bytes) -> bool:
    """Whether a command wrote this file with ``--json``."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        return False
    if not isinstance(content, dict):  # a list of pages
        return isinstance(content, list) and all(isinstance(each, dict) and "formerly" in each for each in content)
    known = kind_of(content) is not None or any(isinstance(content.get(key), list) for key in OTHER_KEYS)
    return isinstance(content.get("schema"), int) and known


def _read(path: Path) -> Any:
    """What a command wrote to a file.

    Raises:
        CannotTry: it is not there, is broken, or is nothing that a command writes.
    """
    content = _content(path)
    kind = kind_of(content)
    if kind is None:
        raise CannotTry(f"a report cannot show {path}; expected {EXPECTED}")
    module, _, name = KINDS[kind].partition(":")
    model = getattr(importlib.import_module(module), name)
    if issubclass(model, BaseModel):
        return read_model(path, model, WHAT.get(kind, "baseline"), AGAIN)
    if content.get("schema") not in SCHEMAS:
        raise CannotTry(
            f"{path}: schema is {content.get('schema')!r}, expected {SCHEMA} (of a newer harness?); {AGAIN}"
        )
    try:
        if kind == "check" and "nothing_to_look_at" in content:  # until schema 2, each check with its reason
            lacking = TypeAdapter(list[NotLookedAt]).validate_python(content["nothing_to_look_at"])
            reasons = together({each.check: each.why for each in lacking})
            content["did_not_apply"] = [NotThere(why, checks) for why, checks in reasons.items()]
        return TypeAdapter(model).validate_python(content)
    except ValidationError as error:
        raise CannotTry(f"{path}: {first_error(error)}; {AGAIN}") from error


def _content(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_bytes())
    except FileNotFoundError as error:
        raise CannotTry(f"{path} not found; expected {EXPECTED}") from error
    except OSError as error:
        raise CannotTry(f"{path} cannot be read ({error.strerror})") from error
    except (ValueError, RecursionError) as error:
        raise CannotTry(f"{path} is not JSON; expected {EXPECTED}") from error
    return found if isinstance(found, dict) else {}
