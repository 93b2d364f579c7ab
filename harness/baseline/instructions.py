"""The stored form of counted instructions, and their comparison: what watching costs, the same on a busy machine.

A loop's updates are counted unwatched and in several ways of watching. What a way takes above the unwatched loop is the
harness's own; that is compared. Counts of other versions of Python, torch, transformers or the tool say nothing about
it, and are not compared.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean, median
from typing import Annotated, Any, ClassVar

from pydantic import Field, ValidationError, field_validator

from harness.baseline.files import Finite, Stored, candidate_path, hardware_class, locked
from harness.errors import CannotTry
from harness.files import StrictModel, first_error
from harness.findings import Finding, Outcome
from harness.record import Verdict

PREFIX = "instructions"
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


class Instructions(Stored):
    """What some counts of one loop came to."""

    kind: ClassVar[str] = "instructions"

    workload: str
    """The loop that was counted; another has other counts."""
    runs: list[InstructionsRun] = Field(min_length=1)

    @property
    def name(self) -> str:
        return name_of(self.hardware)

    @property
    def counts(self) -> dict[str, int]:
        ways = dict.fromkeys(way for run in self.runs for way in run.instructions)
        return {f"counts of {way}": sum(way in run.instructions for run in self.runs) for way in ways}

    def ordered(self) -> Instructions:
        return self.model_copy(update={"runs": sorted(self.runs, key=lambda run: run.started)})

    def figures(self) -> Iterator[tuple[str, float, float, float, float]]:
        """Of each way what an update takes, least, median and most, and the median of what it takes above unwatched."""
        for way in dict.fromkeys(way for run in self.runs for way in run.instructions):
            runs = [run for run in self.runs if way in run.instructions]
            each = [run.instructions[way] for run in runs]
            yield way, min(each), median(each), max(each), median(run.above(way) for run in runs)


def name_of(hardware: str) -> str:
    return f"{PREFIX}-{hardware}"


def run_of(instructions: Mapping[str, float], **provenance: Any) -> InstructionsRun:
    """A count as it is recorded.

    Raises:
        CannotTry: a value is none that a count can have.
    """
    try:
        return InstructionsRun(instructions=dict(instructions), **provenance)
    except ValidationError as error:
        raise CannotTry(f"counted instructions: {first_error(error)}") from error


def add(folder: Path, workload: str, run: InstructionsRun) -> Path:
    """Add a count to the candidate, and return the candidate's file.

    Raises:
        CannotTry: the candidate is broken, or of another workload.
    """
    hardware = hardware_class(run.fingerprint)
    path = candidate_path(folder, name_of(hardware))
    with locked(path):
        before = Instructions.read(path) if path.exists() else None
        if before is not None and before.workload != workload:
            raise CannotTry(f"candidate {path} is of {before.workload}, expected {workload}; accept or delete it first")
        runs = before.runs if before else []
        Instructions(hardware=hardware, workload=workload, runs=[*runs, run]).write(path)
    return path


def compare(baseline: Instructions, workload: str, runs: Sequence[InstructionsRun]) -> Verdict:
    """Whether watching takes as many instructions as recorded, or hardly more: :data:`MARGIN` and :data:`LAYOUT`.

    The unwatched loop must take what it took: where it does not, another build or CPU counts otherwise, and nothing is
    said of watching. A gain is said, not flagged.

    Raises:
        CannotTry: a way was not recorded, or the recorded counts of these versions do not agree with each other.
    """
    fingerprint = runs[0].fingerprint
    recorded = [run for run in baseline.runs if not differing(run.fingerprint, fingerprint)]
    if workload != baseline.workload:
        return _not_applicable(f"the loop is {workload} and the recorded one {baseline.workload}")
    if not recorded:
        return _not_applicable("; ".join(differing(baseline.runs[-1].fingerprint, fingerprint)))
    ways = recorded[0].ways
    if new := [way for run in runs for way in run.ways if way not in ways]:
        raise CannotTry(f"{baseline.name}.json: {new[0]} was not recorded; record it with --harness-update")
    for way in (UNWATCHED, *ways):
        counts = [run.instructions.get(way, math.nan) for run in recorded]
        if not max(counts) <= (1 + REPEATABLE) * min(counts):
            raise CannotTry(
                f"baseline {baseline.name}: the counts of {way} are {min(counts):.4g} to {max(counts):.4g}, expected "
                f"within {REPEATABLE:.1%}; record it anew"
            )
    base = fmean(run.instructions[UNWATCHED] for run in recorded)
    found = fmean(run.instructions[UNWATCHED] for run in runs)
    if abs(found / base - 1) > REPEATABLE:
        return _not_applicable(
            f"unwatched, the loop takes {_millions(found)} and took {_millions(base)} when it was recorded: something "
            "else than the watching counts otherwise here, such as another build or CPU"
        )
    grounds = [f"{UNWATCHED}: {_millions(found)} an update, recorded {_millions(base)}"]
    findings = []
    for way in ways:
        expected, observed = (fmean(run.above(way) for run in each) for each in (recorded, runs))
        more, limit = observed / expected - 1, MARGIN + LAYOUT * base / expected
        gain = "; a gain: record it, so that it is kept" if more < -limit else ""
        grounds.append(
            f"{way}: {_millions(observed)} above {UNWATCHED}, recorded {_millions(expected)} ({len(recorded)} counts): "
            f"{more:+.2%}; fails above {limit:+.1%}{gain}"
        )
        if not more <= limit:  # nothing counted, NaN, fails too
            findings.append(
                Finding(
                    expected=f"{way} {_millions((1 + limit) * expected)} above {UNWATCHED}, or fewer",
                    observed="nothing" if math.isnan(observed) else _millions(observed),
                    where=f"{baseline.name}.json, {way}",
                    hint="The code that watches does more at each event than when it was recorded: look at what "
                    "changed there, or record and accept it where it is meant.",
                )
            )
    outcome: Outcome = "fails" if findings else "holds"
    return Verdict("instructions", outcome, tuple(grounds), tuple(findings))


def compare_candidate(baseline: Instructions, candidate: Instructions) -> Verdict:
    """What is said of a candidate, by the means over those of its counts whose versions are the first one's.

    Raises:
        CannotTry: as of :func:`compare`.
    """
    first = candidate.runs[0].fingerprint
    alike = [run for run in candidate.runs if not differing(first, run.fingerprint)]
    return compare(baseline, candidate.workload, alike)


def differing(recorded: Mapping[str, Any], found: Mapping[str, Any]) -> list[str]:
    """Why two counts are not compared; nothing where they are."""
    there, here = ({key: each.get(key) for key in FACTS} | _versions(each) for each in (recorded, found))
    return [f"{key} was {there[key]} and is {here[key]}" for key in there if there[key] != here[key]]


def _versions(fingerprint: Mapping[str, Any]) -> dict[str, Any]:
    return {name: fingerprint.get("libraries", {}).get(name) for name in VERSIONS}


def _not_applicable(reason: str) -> Verdict:
    return Verdict("instructions", "not applicable", (f"not compared: {reason}",))


def _millions(instructions: float) -> str:
    return f"{instructions / 1e6:.3f} M"
