"""The stored form of benchmarks, and their comparison: one file for each hardware class.

Absolute times mean little on shared machines. What is compared are ratios that were measured side by side: how fast the
harness is beside the document's own code, and how near a training comes to the device's own fastest product. How far a
ratio may fall is what the recorded ones say of themselves.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from harness.baseline.compare import SAME_KERNELS, Verdict
from harness.baseline.files import Finite, Part, Stored, candidate_path, hardware_class, locked
from harness.baseline.statistics import ALPHA, POWER, Spread
from harness.errors import CannotTry
from harness.findings import Finding

PREFIX = "throughput"
RELATIVE = "ours_per_document"
"""The harness's speed beside that of the document's code; compared on every machine of the hardware class."""

ACHIEVED = "achieved_per_peak"
"""FLOP/s of the training beside those of a large product. How near they come depends on the CPU and its threads."""

RATE = "_per_second"
"""Absolute figures end so; they are compared between GPUs of one model only, all their precision being the same."""

ROUNDING = 0.005
"""The least standard deviation that a ratio is taken to have, relatively: recordings may agree by chance."""


class Measured(Part):
    """What one benchmark came to. ``figures`` are shown, and compared where they are rates of the same GPU model."""

    ratios: dict[str, Finite]
    figures: dict[str, Finite] = Field(default_factory=dict)


class BenchmarkRun(Part):
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
        first = error.errors()[0]
        raise CannotTry(f"benchmark {benchmark}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from error


def compare(
    baseline: Throughput,
    benchmark: str,
    ratios: Mapping[str, float],
    figures: Mapping[str, float],
    fingerprint: dict[str, Any],
) -> Verdict:
    """Whether a benchmark is as fast as the recorded runs of it, by each of its ratios.

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
    runs = [run for run in baseline.runs if benchmark in run.benchmarks]
    alike = [run for run in runs if _alike(run.fingerprint, fingerprint)]
    recorded = {name for run in runs for name in run.benchmarks[benchmark].ratios}
    if new := [name for name in ratios if name not in recorded]:
        raise CannotTry(f"{where}: {new[0]} was not recorded; record it with --harness-update and accept it")
    values = {
        name: [each.benchmarks[benchmark].ratios.get(name, math.nan) for each in (runs if name == RELATIVE else alike)]
        for name in sorted(recorded)
    }
    if hardware != "cpu":
        for name in sorted(name for name in figures if name.endswith(RATE)):
            values[name] = [each.benchmarks[benchmark].figures.get(name, math.nan) for each in alike]
    found = {**figures, **ratios}
    findings, grounds = [], []
    compared = [name for name, each in values.items() if each]
    for name, each in values.items():
        if not each:
            grounds.append(f"{name} not compared: no recorded run has this CPU or GPU, its threads and precision")
            continue
        if len(each) < 2 or any(math.isnan(value) for value in each):
            raise CannotTry(f"{where}: {name} needs two or more recorded runs, all with it; record it anew")
        spread = Spread(tuple(each), step=ROUNDING * math.sqrt(12) * abs(sum(each)) / len(each))
        alpha = ALPHA / len(compared)
        limit, observed = spread.interval(1, 2 * alpha)[0], found.get(name, math.nan)
        slower = spread.smallest_drop(1, 2 * alpha) / spread.mean
        grounds.append(
            f"{name} {observed:.4g} against {spread.mean:.4g} ± {spread.deviation:.2g} of {len(each)} runs; a loss of "
            f"{slower:.1%} would show in {POWER:.0%} of cases"
        )
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
    return Verdict(
        "throughput",
        "fails" if findings else "holds" if compared else "not applicable",
        tuple(grounds),
        tuple(findings),
    )


def _alike(recorded: dict[str, Any], found: dict[str, Any]) -> bool:
    keys = (*SAME_KERNELS, "threads", "fp32_precision")
    return all(recorded.get(key) == found.get(key) for key in keys)
