"""The run record: what one run measured and found, as run.json keeps it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from harness.errors import CannotTry
from harness.findings import Outcome, Severity

SCHEMA: Literal[1] = 1
FILE_NAME = "run.json"


class _Part(BaseModel):
    model_config = ConfigDict(
        ser_json_inf_nan="strings",  # "NaN" and "Infinity": JSON has no such numbers, and null would hide them
        extra="forbid",
        populate_by_name=True,
        serialize_by_alias=True,
    )


class FindingRecord(_Part):
    check: str
    severity: Severity
    update: int | None
    where: str | None
    message: str
    expected: str
    observed: str
    hint: str


class CheckRecord(_Part):
    """How one check came out; ``reason`` says why it is not applicable."""

    check: str
    stage: str
    claim: str
    outcome: Outcome
    reason: str | None


class DifferenceRecord(_Part):
    """One thing in which the loop is not the document's own; ``effect`` is the largest difference of any parameter."""

    what: str
    there: str
    by_hand: str
    effect: float


class VerdictRecord(_Part):
    """What one lane of the comparison with the baseline says, and on what grounds."""

    lane: str
    outcome: Outcome
    grounds: list[str]
    findings: list[FindingRecord]


class Provenance(_Part):
    """Which code ran, and how it was called."""

    commit: str | None = None
    """Of the checkout that the harness runs from; None where it is installed from a package."""
    dirty: bool | None = None
    """Whether that checkout had changes."""
    command: str = ""


class Curves(_Part):
    """One value for each update that was made."""

    loss: list[float]
    lr: list[float]
    grad_norm: list[float]


BlockOutcome = Literal["runs", "deprecated", "fails", "not applicable"]


class BlockRecord(_Part):
    """How one code block of a document went as printed."""

    document: str
    file: str
    number: int
    line: int
    label: str
    key: str
    """Equal for equal code."""
    outcome: BlockOutcome
    says: str | None = None
    """The error, the deprecation, or why it cannot be run."""
    replacement: str | None = None
    """What is documented to be written instead, and helped."""
    source: str | None = None
    repaired: bool | None = None
    """Whether it runs with that; None where it runs as printed."""
    shows_output: bool = False
    """Whether the document shows an output that can be compared."""
    prints: str | None = None
    """What it printed, where that is not what the document shows."""


class DocumentsRecord(_Part):
    """Schema 1 of documents.json."""

    schema_: Literal[1] = Field(default=SCHEMA, alias="schema")
    recipe: dict[str, Any]
    fingerprint: dict[str, Any]
    provenance: Provenance
    started: str
    blocks: list[BlockRecord]


class RunRecord(_Part):
    """Schema 1 of run.json. Metrics are fractions, seconds are wall-clock."""

    schema_: Literal[1] = Field(default=SCHEMA, alias="schema")
    recipe: dict[str, Any]
    fingerprint: dict[str, Any]
    findings: list[FindingRecord]
    updates: int
    curves: Curves
    metrics: dict[str, float]
    epochs: list[dict[str, float]]
    seconds: dict[str, float]
    checks: list[CheckRecord]
    updates_planned: int | None
    """None where the run ended before the schedule was made."""
    interrupted: bool
    started: str
    """UTC, ISO 8601."""
    model: str | None
    """Where the fine-tuned model lies, relative to the record; None where training did not end."""
    inputs: dict[str, str] = {}
    """What data and checkpoint held, as SHA-256."""
    rows: dict[str, int] = {}
    """How many rows each split had."""
    provenance: Provenance = Provenance()
    comparison: list[VerdictRecord] = []
    """With the baseline; empty where there is none, or the run was not compared."""
    weights: str | None = None
    """A checksum of the fine-tuned parameters: equal for equal bits."""
    apart: dict[str, float] = {}
    """How far the loop and the plain loop were apart at most in the updates that were compared, and in how many."""
    differences: list[DifferenceRecord] = []
    """Where Trainer is not the document's own loop."""
    facts: dict[str, str] = {}
    """What the installed versions have where the documents' code relies on them (compat.FACTS)."""

    @property
    def failed(self) -> bool:
        """Whether something was found, by a check or against the baseline; warnings alone do not count."""
        return self.checks_failed or any(verdict.outcome == "fails" for verdict in self.comparison)

    @property
    def whole(self) -> bool:
        """Whether every planned update was made."""
        return bool(self.updates) and self.updates == self.updates_planned and self.weights is not None

    @property
    def checks_failed(self) -> bool:
        return any(finding.severity == "error" for finding in self.findings)

    def check(self, check: str) -> CheckRecord:
        """The record of one check by its id.

        Raises:
            KeyError: the run ended before that check.
        """
        return {record.check: record for record in self.checks}[check]

    def write(self, path: Path) -> None:
        """Write the record as JSON, whole or not at all."""
        write_atomically(path, self.model_dump_json(indent=2) + "\n")

    @classmethod
    def read(cls, path: Path) -> RunRecord:
        """Read a record that :meth:`write` wrote; ``path`` is the file or the folder that it lies in.

        Raises:
            CannotTry: no such file, or it is no run record of this schema.
        """
        path = path / FILE_NAME if path.is_dir() else path
        try:
            return cls.model_validate_json(path.read_bytes())
        except FileNotFoundError as error:
            raise CannotTry(f"run record {path} not found") from error
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(map(str, first["loc"])) or "the file"
            raise CannotTry(
                f"{path} is no run record of schema {SCHEMA}: {place}: {first['msg']} ({error.error_count()} in all)"
            ) from error


def write_atomically(path: Path, text: str) -> None:
    """Replace ``path`` with ``text``; a reader, or a crash, sees the old file or the new one and nothing between."""
    path = path.resolve()  # a link stays a link
    if path.exists() and not path.is_file():  # /dev/stdout, a pipe: nothing to replace
        path.write_text(text, encoding="utf-8")
        return
    new = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with new.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, path)
    finally:
        new.unlink(missing_ok=True)


def check_writable(folder: Path) -> None:
    """Create a file in the folder and remove it.

    Raises:
        OSError: that is not possible; asking for permissions would not tell (root, read-only file systems).
    """
    probe = folder / f".{FILE_NAME}.{os.getpid()}"
    probe.touch()
    probe.unlink()
