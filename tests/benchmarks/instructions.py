"""The stored form of counted instructions, and their comparison: what watching costs, the same on a busy machine.

A loop's updates are counted unwatched and in several ways of watching. What a way takes above the unwatched loop is the
harness's own; that is compared. Counts of other versions of Python, torch, transformers or the tool say nothing about
it, and are not compared.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, field_validator

from harness.documented_run.baseline.files import Finite
from harness.errors import CannotTry
from harness.files import StrictModel, first_error, read_model, write_atomically
from harness.findings import Outcome

RECORD = Path(__file__).parents[2] / "scripts" / "records" / "instructions.json"
"""The counts that others are held against: of commits of this project, by its own benchmarks."""

UNWATCHED = "unwatched"

REPEATABLE = 0.005
"""How far two counts of the same code may be apart, relatively."""

MARGIN = 0.02
"""How much more than recorded watching may take, relatively, before it is flagged."""

LAYOUT = 0.002
"""Of what the unwatched loop takes: how much more it may be besides. By so much the same code's count was seen to move
where other code, a path or a variable moved things in memory: dictionaries and caches then collide elsewhere."""

VERSIONS = ("torch", "transformers")
FACTS = ("python", "machine", "tool")
"""What must be equal in two fingerprints whose counts are compared."""


class InstructionsRun(StrictModel):
    """What one count came to, and where it comes from."""

    started: str
    commit: str | None
    dirty: bool | None
    command: str
    fingerprint: dict[str, Any]
    """With ``tool``, which counted, and its version."""
    instructions: dict[str, Annotated[Finite, Field(gt=0)]]
    """An update takes, by the way of watching."""

    @field_validator("instructions")
    @classmethod
    def _above(cls, instructions: dict[str, float]) -> dict[str, float]:
        if UNWATCHED not in instructions or len(instructions) < 2:
            raise ValueError(f"expected {UNWATCHED} and one way of watching or more, found {', '.join(instructions)}")
        return instructions

    @property
    def ways(self) -> list[str]:
        """Of watching."""
        return [way for way in self.instructions if way != UNWATCHED]

    def above(self, way: str) -> float:
        """What an update takes more than unwatched; NaN where this way was not counted."""
        return self.instructions.get(way, math.nan) - self.instructions[UNWATCHED]


class Instructions(StrictModel):
    """What some counts of one loop came to."""

    schema_: Literal[1] = Field(default=1, alias="schema")
    workload: str
    """The loop that was counted; another has other counts."""
    runs: list[InstructionsRun] = Field(min_length=1)

    @classmethod
    def read(cls, path: Path) -> Instructions:
        """The recorded counts.

        Raises:
            CannotTry: no such file, or it cannot be trusted.
        """
        return read_model(path, cls, "record of instructions", "restore it, or record one with --harness-update")


@dataclass(frozen=True)
class Compared:
    """How a count compares with the recorded ones."""

    outcome: Outcome
    grounds: tuple[str, ...]
    dearer: tuple[str, ...] = ()
    """Of each way that takes too many, what was expected and what was found."""


def run_of(instructions: Mapping[str, float], **provenance: Any) -> InstructionsRun:
    """A count as it is recorded.

    Raises:
        CannotTry: a value is none that a count can have.
    """
    try:
        return InstructionsRun(instructions=dict(instructions), **provenance)
    except ValidationError as error:
        raise CannotTry(f"counted instructions: {first_error(error)}") from error


def add(path: Path, workload: str, run: InstructionsRun) -> None:
    """Add a count to the file.

    Raises:
        CannotTry: the file is broken, or of another workload.
    """
    before = Instructions.read(path) if path.exists() else None
    if before is not None and before.workload != workload:
        raise CannotTry(f"{path} is of {before.workload}, expected {workload}; delete it first")
    runs = sorted([*(before.runs if before else []), run], key=lambda each: each.started)
    recorded = Instructions(workload=workload, runs=runs)
    write_atomically(path, recorded.model_dump_json(indent=1, by_alias=True) + "\n")


def compare(recorded: Instructions, workload: str, found: InstructionsRun) -> Compared:
    """Whether watching takes as many instructions as recorded, or hardly more: :data:`MARGIN` and :data:`LAYOUT`.

    The unwatched loop must take what it took: where it does not, another build or CPU counts otherwise, and nothing is
    said of watching. A gain is said, not flagged.

    Raises:
        CannotTry: a way was not recorded, or the recorded counts of these versions do not agree with each other.
    """
    runs = [run for run in recorded.runs if not differing(run.fingerprint, found.fingerprint)]
    if workload != recorded.workload:
        return _not_applicable(f"the loop is {workload} and the recorded one {recorded.workload}")
    if not runs:
        return _not_applicable("; ".join(differing(recorded.runs[-1].fingerprint, found.fingerprint)))
    ways = runs[0].ways
    if new := [way for way in found.ways if way not in ways]:
        raise CannotTry(f"{new[0]} was not recorded; record it with --harness-update")
    for way in (UNWATCHED, *ways):
        counts = [run.instructions.get(way, math.nan) for run in runs]
        if not max(counts) <= (1 + REPEATABLE) * min(counts):
            raise CannotTry(
                f"the recorded counts of {way} are {min(counts):.4g} to {max(counts):.4g}, expected "
                f"within {REPEATABLE:.1%}; record it anew"
            )
    base, now = fmean(run.instructions[UNWATCHED] for run in runs), found.instructions[UNWATCHED]
    if abs(now / base - 1) > REPEATABLE:
        return _not_applicable(
            f"unwatched, the loop takes {_millions(now)} and took {_millions(base)} when it was recorded: something "
            "else than the watching counts otherwise here, such as another build or CPU"
        )
    grounds = [f"{UNWATCHED}: {_millions(now)} an update, recorded {_millions(base)}"]
    dearer = []
    for way in ways:
        expected, observed = fmean(run.above(way) for run in runs), found.above(way)
        more, limit = observed / expected - 1, MARGIN + LAYOUT * base / expected
        gain = "; a gain: record it, so that it is kept" if more < -limit else ""
        grounds.append(
            f"{way}: {_millions(observed)} above {UNWATCHED}, recorded {_millions(expected)} ({len(runs)} counts): "
            f"{more:+.2%}; fails above {limit:+.1%}{gain}"
        )
        if not more <= limit:  # nothing counted, NaN, fails too
            counted = "nothing" if math.isnan(observed) else _millions(observed)
            most = _millions((1 + limit) * expected)
            dearer.append(f"{way}: expected {most} above {UNWATCHED}, or fewer; found {counted}")
    return Compared("fails" if dearer else "holds", tuple(grounds), tuple(dearer))


def differing(recorded: Mapping[str, Any], found: Mapping[str, Any]) -> list[str]:
    """Why two counts are not compared; nothing where they are."""
    there, here = ({key: each.get(key) for key in FACTS} | _versions(each) for each in (recorded, found))
    return [f"{key} was {there[key]} and is {here[key]}" for key in there if there[key] != here[key]]


def _versions(fingerprint: Mapping[str, Any]) -> dict[str, Any]:
    return {name: fingerprint.get("libraries", {}).get(name) for name in VERSIONS}


def _not_applicable(reason: str) -> Compared:
    return Compared("not applicable", (f"not compared: {reason}",))


def _millions(instructions: float) -> str:
    return f"{instructions / 1e6:.3f} M"
