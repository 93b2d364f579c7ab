"""The stored form of benchmarks, and their comparison: one file for each hardware class.

Absolute times mean little on shared machines. What is compared are ratios that were measured side by side: how fast the
harness is beside the document's own code, and how near a training comes to the device's own fastest product. How far a
ratio may fall is what the recorded ones say of themselves.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any

from pydantic import Field, ValidationError

from harness.baseline.files import Finite, Stored, candidate_path, hardware_class, locked
from harness.baseline.statistics import ALPHA, POWER, Spread
from harness.errors import CannotTry
from harness.files import StrictModel, first_error
from harness.findings import Finding, Outcome
from harness.record import Verdict

PREFIX = "throughput"
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


def measured(benchmark: str, ratios: Mapping[str, float], figures: Mapping[str, float]) -> Measured:
    """What a benchmark came to, as it is recorded.

    Raises:
        CannotTry: a value is not finite.
    """
    try:
        return Measured(ratios=dict(ratios), figures=dict(figures))
    except ValidationError as error:
        raise CannotTry(f"benchmark {benchmark}: {first_error(error)}") from error


def compare(
    baseline: Throughput,
    benchmark: str,
    ratios: Mapping[str, float],
    figures: Mapping[str, float],
    fingerprint: dict[str, Any],
    *,
    runs: int = 1,
) -> Verdict:
    """Whether a benchmark is as fast as the recorded runs of it, by each of its ratios, the means of ``runs`` new ones.

    The limit of a ratio is the lower end of the prediction interval of the recorded ones (Student's t), at a rate of
    false alarms of :data:`~harness.baseline.statistics.ALPHA` that the ratios share. A gain is said, not flagged.

    Raises:
        CannotTry: the benchmark or one of its ratios was not recorded, or only once; or on another hardware class.
    """
    where = f"{baseline.name}.json, {benchmark}"
    if (hardware := hardware_class(fingerprint)) != baseline.hardware:
        raise CannotTry(
            f"baseline {baseline.name}: hardware is {baseline.hardware!r} there and {hardware!r} in the run; each "
            "hardware class has its own baseline"
        )
    recorded = _recorded(baseline, benchmark, fingerprint)
    if new := [name for name in ratios if name not in recorded]:
        raise CannotTry(f"{where}: {new[0]} was not recorded; record it with --harness-update and accept it")
    # One run on a machine like this has no spread, and no other machine's will do; for what all of them share it must.
    compared = {name: values for name, values in recorded.items() if len(values) > 1 or name == RELATIVE}
    found = {**figures, **ratios}
    findings, seeing = [], False
    grounds = [
        f"{benchmark}: {name} not compared: no recorded run has this CPU or GPU, its threads and precision"
        for name in recorded
        if name not in compared
    ]
    for name, values in compared.items():
        if len(values) < 2 or any(math.isnan(value) for value in values):
            raise CannotTry(f"{where}: {name} needs two or more recorded runs, all with it; record it anew")
        spread = Spread(tuple(values), step=ROUNDING * math.sqrt(12) * abs(fmean(values)))
        alpha = 2 * ALPHA / len(compared)  # of two ends, of which only the lower one is looked at
        limit, observed = spread.interval(runs, alpha)[0], found.get(name, math.nan)
        drop = spread.smallest_drop(runs, alpha) / spread.mean
        grounds.append(
            f"{benchmark}: {name} {observed:.4g} against {spread.mean:.4g} ± {spread.deviation:.2g} of {len(values)} "
            f"runs; smallest detectable loss {drop:.1%} ({POWER:.0%} power)"
        )
        if drop > 1:
            grounds.append(f"{benchmark}: {name} not compared: too few runs to see any loss that is possible")
        else:
            seeing = True
        if not observed >= limit:  # nothing measured, or NaN, fails too
            findings.append(
                Finding(
                    expected=f"{name} {limit:.4g} or more",
                    observed=f"{observed:.4g}" if name in found else "nothing",
                    where=where,
                    hint="Slower than the recorded runs explain: measure once more on an idle machine, then look at "
                    "what changed in this part.",
                )
            )
    outcome: Outcome = "fails" if findings else "holds" if seeing else "not applicable"
    return Verdict("throughput", outcome, tuple(grounds), tuple(findings))


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


def compare_candidate(baseline: Throughput, candidate: Throughput) -> list[Verdict]:
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
        verdicts.append(compare(baseline, benchmark, ratios, figures, fingerprint, runs=max(1, len(measured))))
    return verdicts


def _means(measured: Sequence[Mapping[str, float]]) -> dict[str, float]:
    names = {name for each in measured for name in each}
    return {name: fmean(each.get(name, math.nan) for each in measured) for name in sorted(names)}


def _alike(recorded: dict[str, Any], found: dict[str, Any]) -> bool:
    keys = ("device", "device_name", "machine", "cpu", "threads", "fp32_precision")
    return all(recorded.get(key) == found.get(key) for key in keys)
