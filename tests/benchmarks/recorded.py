"""The stored form of benchmarks, and their comparison: one file for each hardware class.

Absolute times mean little on shared machines. What is compared are ratios that were measured side by side: how fast the
harness is beside the document's own code, and how near a training comes to the device's own fastest product. How far a
ratio may fall is what the recorded ones say of themselves; how sure a new one is, its own interval says.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any

from pydantic import Field, ValidationError, model_validator

from harness.documented_run.baseline.files import Finite, Stored, baseline_path, candidate_path, hardware_class, locked
from harness.documented_run.baseline.review import few
from harness.documented_run.baseline.statistics import ALPHA, POWER, Spread
from harness.errors import CannotTry
from harness.files import StrictModel, first_error
from harness.findings import Finding, Outcome
from tests.benchmarks.contention import busy
from tests.benchmarks.paired import Interval, Told, judged

PREFIX = "throughput"
RECORDS = Path(__file__).parents[2] / "scripts" / "records"
"""The folder of what was recorded; its candidates lie in a folder of it."""

RELATIVE = "ours_per_document"
"""The harness's speed beside that of the document's code; compared on every machine of the hardware class."""

ACHIEVED = "achieved_per_peak"
"""FLOP/s of the training beside those of a large product. How near they come depends on the CPU and its threads."""

RATE = "_per_second"
"""Absolute figures end so; they are compared between GPUs of one model only, all their precision being the same."""

ROUNDING = 0.005
"""The least standard deviation that a ratio is taken to have, relatively: recordings may agree by chance."""


class Measured(StrictModel):
    """What one benchmark came to. ``figures`` are shown, and compared where they are rates of the same GPU model."""

    ratios: dict[str, Annotated[Finite, Field(gt=0)]] = Field(min_length=1)
    figures: dict[str, Finite] = Field(default_factory=dict)
    intervals: dict[str, Interval] = Field(default_factory=dict)
    """Of the ratios that were timed in blocks; none in files of before they were."""

    @model_validator(mode="after")
    def _of_the_ratios(self) -> Measured:
        for name, interval in self.intervals.items():
            if not interval.low <= self.ratios.get(name, math.nan) <= interval.high:
                raise ValueError(f"the interval of {name} is not around it")
        return self


class BenchmarkRun(StrictModel):
    """What the benchmarks of one pytest run came to, and where it comes from."""

    started: str
    commit: str | None
    dirty: bool | None
    command: str
    fingerprint: dict[str, Any]
    benchmarks: dict[str, Measured]


class Throughput(Stored):
    """What some runs of the benchmarks came to on one hardware class."""

    runs: list[BenchmarkRun] = Field(min_length=1)

    @property
    def name(self) -> str:
        return name_of(self.hardware)

    def ordered(self) -> Throughput:
        runs = [
            run.model_copy(update={"benchmarks": dict(sorted(run.benchmarks.items()))})
            for run in sorted(self.runs, key=lambda run: run.started)
        ]
        return self.model_copy(update={"runs": runs})

    @property
    def benchmarks(self) -> list[str]:
        return sorted({name for run in self.runs for name in run.benchmarks})

    @property
    def counts(self) -> dict[str, int]:
        return {f"runs of {name}": sum(name in run.benchmarks for run in self.runs) for name in self.benchmarks}


def name_of(hardware: str) -> str:
    return f"{PREFIX}-{hardware}"


def add(
    folder: Path, benchmark: str, measured: Measured, *, fingerprint: dict[str, Any], started: str, **provenance: Any
) -> Path:
    """Add what a benchmark came to to the candidate, to the run that ``started`` names; return the candidate's file.

    Raises:
        CannotTry: the candidate is broken.
    """
    hardware = hardware_class(fingerprint)
    path = candidate_path(folder, name_of(hardware))
    with locked(path):
        runs = Throughput.read(path).runs if path.exists() else []
        mine = next((run for run in runs if run.started == started), None)
        if mine is None:
            mine = BenchmarkRun(started=started, fingerprint=fingerprint, benchmarks={}, **provenance)
            runs.append(mine)
        mine.benchmarks[benchmark] = measured
        Throughput(hardware=hardware, runs=runs).write(path)
    return path


def measured(
    benchmark: str,
    ratios: Mapping[str, float],
    figures: Mapping[str, float],
    intervals: Mapping[str, Interval] | None = None,
) -> Measured:
    """What a benchmark came to, as it is recorded.

    Raises:
        CannotTry: a value is not finite.
    """
    try:
        return Measured(ratios=dict(ratios), figures=dict(figures), intervals=dict(intervals or {}))
    except ValidationError as error:
        raise CannotTry(f"benchmark {benchmark}: {first_error(error)}") from error


@dataclass(frozen=True)
class SpeedVerdict:
    """Whether a benchmark is as fast as its recorded runs, and on what grounds."""

    outcome: Outcome
    grounds: tuple[str, ...]
    findings: tuple[Finding, ...] = ()

    def lines(self) -> Iterator[str]:
        yield f"throughput  {self.outcome}"
        yield from (f"  {ground}" for ground in self.grounds)
        for finding in self.findings:
            yield from finding.lines()[1:]


@dataclass(frozen=True)
class Limit:
    """The least that a ratio may be, by the recorded ones, where it is the mean of ``runs`` new ones."""

    spread: Spread
    runs: int
    alpha: float
    """The rate at which runs as fast as the recorded ones are outside on either side, of which the lower one counts."""

    @property
    def value(self) -> float:
        """The lower end of the recorded ratios' prediction interval (Student's t)."""
        return self.spread.interval(self.runs, self.alpha)[0]

    def power(self, loss: float, half: float = 0.0) -> float:
        """How often a loss, a share of the recorded mean, is found by intervals that reach ``half`` above the ratio."""
        return self.spread.power(loss * self.spread.mean - half, self.runs, self.alpha)

    def smallest_loss(self, half: float = 0.0) -> float:
        """The smallest that is found with a power of :data:`~harness.documented_run.baseline.statistics.POWER`."""
        return (self.spread.smallest_drop(self.runs, self.alpha) + half) / self.spread.mean


def limits(
    baseline: Throughput, benchmark: str, fingerprint: dict[str, Any], *, runs: int = 1
) -> dict[str, Limit | None]:
    """The limits of a benchmark's ratios on this machine; None where no recorded run is of a machine like it.

    They share a rate of false alarms of :data:`~harness.documented_run.baseline.statistics.ALPHA`.

    Raises:
        CannotTry: the benchmark was not recorded, or only once; or on another hardware class.
    """
    where = f"{baseline.name}.json, {benchmark}"
    if (hardware := hardware_class(fingerprint)) != baseline.hardware:
        raise CannotTry(
            f"baseline {baseline.name}: hardware is {baseline.hardware!r} there and {hardware!r} in the run; each "
            "hardware class has its own baseline"
        )
    recorded = _recorded(baseline, benchmark, fingerprint)
    # One run on a machine like this has no spread, and no other machine's will do; for what all of them share it must.
    compared = {name for name, values in recorded.items() if len(values) > 1 or name == RELATIVE}
    found: dict[str, Limit | None] = dict.fromkeys(recorded)
    for name in recorded:
        if name not in compared:
            continue
        values = recorded[name]
        if len(values) < 2 or any(math.isnan(value) for value in values):
            raise CannotTry(f"{where}: {name} needs two or more recorded runs, all with it; record it anew")
        spread = Spread(tuple(values), step=ROUNDING * math.sqrt(12) * abs(fmean(values)))
        found[name] = Limit(spread, runs, 2 * ALPHA / len(compared))
    return found


def compare(
    baseline: Throughput,
    benchmark: str,
    ratios: Mapping[str, float],
    figures: Mapping[str, float],
    fingerprint: dict[str, Any],
    *,
    intervals: Mapping[str, Interval] | None = None,
    runs: int = 1,
) -> SpeedVerdict:
    """Whether a benchmark is as fast as the recorded runs of it, by each of its ratios, the means of ``runs`` new ones.

    A ratio that has an interval fails only where all of it is below the limit, and holds only where none of it is; else
    it cannot be told, and the comparison is not applicable. Nor is anything slower than others made it: on a busy
    machine a loss cannot be told. A gain is said, not flagged.

    Raises:
        CannotTry: the benchmark or one of its ratios was not recorded, or only once; or on another hardware class.
    """
    where = f"{baseline.name}.json, {benchmark}"
    by_name = limits(baseline, benchmark, fingerprint, runs=runs)
    if new := [name for name in ratios if name not in by_name]:
        raise CannotTry(f"{where}: {new[0]} was not recorded; record it with --harness-update and accept it")
    found, intervals, of_machine = {**figures, **ratios}, intervals or {}, busy(figures)
    findings, told, seeing = [], set(), False
    grounds = [
        f"{benchmark}: {name} not compared: no recorded run has this CPU or GPU, its threads and precision"
        for name, limit in by_name.items()
        if limit is None
    ]
    for name, limit in by_name.items():
        if limit is None:
            continue
        observed, interval, spread = found.get(name, math.nan), intervals.get(name), limit.spread
        verdict, says = _judged(observed, interval, limit.value, of_machine)
        told.add(verdict)
        loss = limit.smallest_loss(interval.high - observed if interval else 0.0)
        grounds.append(
            f"{benchmark}: {name} {says}; recorded {spread.mean:.4g} ± {spread.deviation:.2g} of {len(spread.values)} "
            f"runs, smallest detectable loss {loss:.1%} ({POWER:.0%} power)"
        )
        if loss > 1:
            grounds.append(f"{benchmark}: {name} not compared: too few runs to see any loss that is possible")
        else:
            seeing = True
        if verdict == "slower":
            findings.append(
                Finding(
                    expected=f"{name} {limit.value:.4g} or more",
                    observed=f"{observed:.4g}" if name in found else "nothing",
                    where=where,
                    hint="Slower than the recorded runs explain: measure once more on an idle machine, then look at "
                    "what changed in this part.",
                )
            )
    holds: Outcome = "holds" if seeing and "cannot tell" not in told else "not applicable"
    return SpeedVerdict("fails" if findings else holds, tuple(grounds), tuple(findings))


def _judged(observed: float, interval: Interval | None, limit: float, busy: str | None) -> tuple[Told, str]:
    """As :func:`~tests.benchmarks.paired.judged`; what has no interval is taken as it is."""
    if interval is not None and math.isfinite(observed):
        return judged(observed, interval, limit, busy)
    told: Told = "faster or equal" if observed >= limit else "slower"  # nothing measured, or NaN, is slower too
    if busy and told == "slower" and math.isfinite(observed):
        return "cannot tell", f"{observed:.4g}, limit {limit:.4g}: cannot tell, {busy}"
    return told, f"{observed:.4g}, limit {limit:.4g}: {told}"


def _recorded(baseline: Throughput, benchmark: str, fingerprint: dict[str, Any]) -> dict[str, list[float]]:
    """What was recorded of a benchmark and may be compared, by name; NaN where a run lacks a value."""
    runs = [run for run in baseline.runs if benchmark in run.benchmarks]
    alike = [run for run in runs if _alike(run.fingerprint, fingerprint)]
    ratios = sorted({name for run in runs for name in run.benchmarks[benchmark].ratios})
    recorded = {
        name: [run.benchmarks[benchmark].ratios.get(name, math.nan) for run in (runs if name == RELATIVE else alike)]
        for name in ratios
    }
    if baseline.hardware != "cpu":
        rates = {name for run in alike for name in run.benchmarks[benchmark].figures if name.endswith(RATE)}
        recorded |= {
            name: [run.benchmarks[benchmark].figures.get(name, math.nan) for run in alike] for name in sorted(rates)
        }
    return recorded


def compare_candidate(baseline: Throughput, candidate: Throughput) -> list[SpeedVerdict]:
    """What is said of each benchmark of a candidate, by the means over those of its runs that are like its first.

    Raises:
        CannotTry: the candidate has other benchmarks, or is of another hardware class.
    """
    verdicts = []
    fingerprint = candidate.runs[0].fingerprint
    alike = [run for run in candidate.runs if _alike(run.fingerprint, fingerprint)]
    for benchmark in sorted({*baseline.benchmarks, *candidate.benchmarks}):
        measured = [run.benchmarks[benchmark] for run in alike if benchmark in run.benchmarks]
        ratios, figures = _means([each.ratios for each in measured]), _means([each.figures for each in measured])
        intervals, runs = _mean_intervals(measured, ratios), max(1, len(measured))
        verdicts.append(compare(baseline, benchmark, ratios, figures, fingerprint, intervals=intervals, runs=runs))
    return verdicts


def accept(folder: Path, name: str, reason: str) -> Path:
    """Make the candidate of that name what is compared with. The old one's hash and the reason go into the new file.

    Raises:
        CannotTry: no such candidate or no reason; it is of another name or hardware class; or it has fewer runs of a
            benchmark than what it would replace.
    """
    candidate, path = candidate_path(folder, name), baseline_path(folder, name)
    if not reason.strip():
        raise CannotTry("what was recorded is accepted for a reason; give one with --reason")
    Throughput.read(candidate)  # before a lock is left beside nothing
    with locked(candidate):
        new, old = Throughput.read(candidate), Throughput.read(path) if path.exists() else None
        if {hardware_class(run.fingerprint) for run in new.runs} != {new.hardware} or new.name != name:
            raise CannotTry(f"candidate {candidate} is not of {name} by its contents; record it anew")
        if lacking := few(new, old):
            raise CannotTry(f"candidate {candidate} has {lacking}")
        new.reason = reason.strip()
        new.replaces = hashlib.sha256(path.read_bytes()).hexdigest() if old else None
        new.write(path)
        candidate.unlink()
    return path


def _means(measured: Sequence[Mapping[str, float]]) -> dict[str, float]:
    names = {name for each in measured for name in each}
    return {name: fmean(each.get(name, math.nan) for each in measured) for name in sorted(names)}


def _mean_intervals(measured: Sequence[Measured], means: Mapping[str, float]) -> dict[str, Interval]:
    """Of the means, where every run has an interval: runs err independently, so the squares of the halves add up."""
    found = {}
    for name in set.intersection(*(set(each.intervals) for each in measured)) if measured else ():
        low, high = (
            math.hypot(*(getattr(each.intervals[name], end) - each.ratios[name] for each in measured)) / len(measured)
            for end in ("low", "high")
        )
        blocks = sum(each.intervals[name].blocks for each in measured)
        found[name] = Interval(low=means[name] - low, high=means[name] + high, blocks=blocks)
    return found


def _alike(recorded: dict[str, Any], found: dict[str, Any]) -> bool:
    keys = ("device", "device_name", "machine", "cpu", "threads", "fp32_precision")
    return all(recorded.get(key) == found.get(key) for key in keys)
