"""The run record: what one run measured and found, as run.json keeps it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    PlainSerializer,
    SerializerFunctionWrapHandler,
    ValidationError,
    model_serializer,
)

from harness.files import StrictModel, first_error, read_model, write_atomically
from harness.findings import CheckOutcome, Difference, Finding, Outcome

SCHEMA: Literal[1] = 1
FILE_NAME = "run.json"

FINDING_KEYS = ("check", "severity", "update", "where", "message", "expected", "observed", "hint")
"""Keys of a finding in the order in which schema 1 has them."""

FindingInOrder = Annotated[
    Finding, PlainSerializer(lambda finding: {name: getattr(finding, name) for name in FINDING_KEYS})
]

Comparison = Literal["exact", "quality", "documented"]


def unsigned(digest: str) -> str:
    """A digest in 16 digits; records of earlier versions have the number with its sign."""
    return f"{int(digest, 16) % 2**64:016x}" if re.fullmatch(r"-[0-9a-f]+", digest) else digest


Weights = Annotated[str, AfterValidator(unsigned)]
"""A checksum of parameters, in 16 hexadecimal digits: equal for equal bits."""


@dataclass(frozen=True)
class Verdict:
    """What one comparison with the baseline says, and on what grounds."""

    comparison: Annotated[Comparison, Field(alias="lane")]
    outcome: Outcome
    grounds: tuple[str, ...]
    findings: tuple[FindingInOrder, ...] = ()

    def __post_init__(self) -> None:
        named = (replace(each, check=f"baseline::{self.comparison}") for each in self.findings)
        object.__setattr__(self, "findings", tuple(named))


class Provenance(StrictModel):
    """Which code ran, and how it was called."""

    commit: str | None = None
    """Commit of the checkout that the harness runs from; None where it is installed from a package."""
    dirty: bool | None = None
    """Whether that checkout had changes."""
    command: str = ""
    resumed_after: int | None = None
    """The update after which the run went on where it had been killed; None, and no key in files, where it was not."""

    @model_serializer(mode="wrap")
    def _as_before(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        values: dict[str, Any] = handler(self)
        return {name: value for name, value in values.items() if name != "resumed_after" or value is not None}


class Curves(StrictModel):
    """One value for each update that was made."""

    loss: list[float]
    lr: list[float]
    grad_norm: list[float]


class TensorDigests(StrictModel):
    """One update's tensors by name: equal digests for equal bits."""

    update: int
    weights: dict[str, str]
    """Parameters and buffers before the step."""
    gradients: dict[str, str]
    """Gradients as the step used them."""


class Digests(StrictModel):
    """What tells where two runs part, without their tensors."""

    rows: list[str]
    """Digests of what each row of each update holds without padding, in the batch's order: eight digits, by a space."""
    random: list[str]
    """State of torch's random number generators at the step of each update."""
    tensors: list[TensorDigests]
    """Tensors of the updates 1, 2, 4, 8 and so on."""


BlockOutcome = Literal["runs", "deprecated", "fails", "not applicable"]


class BlockRecord(StrictModel):
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
    cell: int | None = None
    """Number of its cell in a notebook, counted from 1."""
    same_as: str | None = None
    """The document and number of the block that was executed, where this is a copy of it after the same blocks."""
    seconds: float | None = None
    """How long it ran as printed; None for what was not executed."""


class _Keys(BaseModel):
    """The types of values that others compute with, where they are there; what is only compared may be anything."""

    model_config = ConfigDict(strict=True)


class _RecipeKeys(_Keys):
    name: str = Field(default="tiny", min_length=1)
    loop: str = "plain"
    seed: int = 0
    epochs: int = Field(default=1, ge=1)
    processes: int = Field(default=1, ge=1)
    metrics: Sequence[str] = ()


class _LibrariesKeys(_Keys):
    libraries: dict[str, str | None] = Field(default_factory=dict)


class _FingerprintKeys(_LibrariesKeys):
    device: str = "cpu"
    device_name: str | None = None


def _has(keys: type[_Keys]) -> AfterValidator:
    """Whether the keys of a part have values of their types; it stays as it is, and in its order."""

    def check(part: dict[str, Any]) -> dict[str, Any]:
        try:
            keys.model_validate(part)
        except ValidationError as error:
            raise ValueError(first_error(error)) from None
        return part

    return AfterValidator(check)


RecordedRecipe = Annotated[dict[str, Any], _has(_RecipeKeys)]
RecordedFingerprint = Annotated[dict[str, Any], _has(_FingerprintKeys)]


class DocumentsRecord(StrictModel):
    """Schema 1 of documents.json."""

    schema_: Literal[1] = Field(default=SCHEMA, alias="schema")
    kind: Literal["documents"] = "documents"
    recipe: dict[str, Any]
    fingerprint: Annotated[dict[str, Any], _has(_LibrariesKeys)]
    provenance: Provenance
    started: str
    blocks: list[BlockRecord]
    seconds: dict[str, float] = Field(default_factory=dict)
    """For each file that was done with."""
    timeout: float | None = None
    """Seconds that each block was given."""
    interrupted: bool = False
    """Whether it ended, or is still running, before all documents were through."""


class RunRecord(StrictModel):
    """Schema 1 of run.json. Metrics are fractions, seconds are wall-clock."""

    schema_: Literal[1] = Field(default=SCHEMA, alias="schema")
    kind: Literal["run"] = "run"
    recipe: RecordedRecipe
    fingerprint: RecordedFingerprint
    findings: list[FindingInOrder]
    updates: int
    curves: Curves
    metrics: dict[str, float]
    epochs: list[dict[str, float]]
    seconds: dict[str, float]
    checks: list[CheckOutcome]
    updates_planned: int | None
    """None where the run ended before the schedule was made."""
    interrupted: bool
    started: str
    """UTC, ISO 8601."""
    model: str | None
    """Where the fine-tuned model lies, relative to the record; None where training did not end."""
    inputs: dict[str, str] = Field(default_factory=dict)
    """What data and checkpoint held, as SHA-256."""
    rows: dict[str, int] = Field(default_factory=dict)
    """How many rows each split had."""
    provenance: Provenance = Provenance()
    comparison: list[Verdict] = Field(default_factory=list)
    """Comparison with the baseline; empty where there is none, or the run was not compared."""
    weights: Weights | None = None
    """The checksum of the fine-tuned parameters; None of a run that did not make all updates."""
    digests: Digests | None = None
    """None in records of earlier versions."""
    apart: dict[str, float] = Field(default_factory=dict)
    """The largest differences from the plain loop in the updates that were compared, and how many these were."""
    differences: list[Difference] = Field(default_factory=list)
    """Where Trainer is not the document's own loop."""
    facts: dict[str, str] = Field(default_factory=dict)
    """What the installed versions have where the documents' code relies on them (compat.FACTS)."""

    @property
    def failed(self) -> bool:
        """Whether something was found, by a check or against the baseline; warnings alone do not count."""
        return self.checks_failed or any(verdict.outcome == "fails" for verdict in self.comparison)

    @property
    def all_findings(self) -> list[Finding]:
        """Findings of the checks, and of the comparison with the baseline."""
        return [*self.findings, *(finding for verdict in self.comparison for finding in verdict.findings)]

    @property
    def whole(self) -> bool:
        """Whether every planned update was made."""
        return bool(self.updates) and self.updates == self.updates_planned and self.weights is not None

    @property
    def contradictions(self) -> list[str]:
        """What in it cannot be so beside the rest of it: a record is a file, which somebody may have edited."""
        found = []
        last = self.epochs[-1] if self.epochs and self.whole else {}
        for name, value in self.metrics.items():
            if name in last and last[name] != value:
                found.append(f"metrics has {name} {value:.4f}, and the last of epochs {last[name]:.4f}")
        for name, curve in dict(self.curves).items():
            if curve and len(curve) != self.updates:
                found.append(f"curves has {len(curve)} entries of {name} for {self.updates} updates")
        held = {each.check for each in self.checks if each.outcome == "holds"}
        found += [f"{each.check} holds, and is among the findings" for each in self.findings if each.check in held]
        return found

    @property
    def checks_failed(self) -> bool:
        return any(finding.severity == "error" for finding in self.findings)

    def check(self, check: str) -> CheckOutcome:
        """The record of one check by its id.

        Raises:
            KeyError: the run ended before that check.
        """
        return {record.check: record for record in self.checks}[check]

    def as_json(self) -> str:
        return self.model_dump_json(indent=2) + "\n"

    def write(self, path: Path) -> None:
        """Write the record as JSON, whole or not at all."""
        write_atomically(path, self.as_json())

    @classmethod
    def read(cls, path: Path) -> RunRecord:
        """Read a record that :meth:`write` wrote; ``path`` is the file or the folder that it lies in.

        Raises:
            CannotTry: no such file, or it is no run record of this schema.
        """
        path = path / FILE_NAME if path.is_dir() else path
        return read_model(path, cls, "run record", "give a run.json of this version, or the folder that it lies in")
