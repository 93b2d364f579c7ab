"""Benchmarks against the recorded ones: what is slower than they explain fails, and nothing passes by absence."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.stats import binom

from harness.documented_run.recipe import DEFAULT_RECIPE
from harness.errors import CannotTry
from tests.benchmarks import recorded
from tests.benchmarks.accept import main
from tests.benchmarks.paired import LOOKS, Interval, measure
from tests.benchmarks.recorded import ACHIEVED, RELATIVE, SpeedVerdict, Throughput, compare
from tests.benchmarks.test_precision import UNITS
from tests.benchmarks.weather import rounds

CPU: dict[str, Any] = {
    "device": "cpu",
    "device_name": None,
    "machine": "x86_64",
    "cpu": "a",
    "threads": 2,
    "fp32_precision": {},
}
GPU = CPU | {"device": "cuda", "device_name": "NVIDIA H200"}
RATIOS = {RELATIVE: 1.0, ACHIEVED: 0.3}
RUNS = 10
KNOWN: dict[str, Any] = {"fingerprint": CPU, "commit": None, "dirty": None, "command": "pytest"}


def record(folder: Path, fingerprint: dict[str, Any] = CPU, *, deviation: float = 0.01) -> Path:
    random = np.random.default_rng(5)
    for number in range(RUNS):
        noise = 1 + deviation * random.normal()
        recorded.add(
            folder,
            "training",
            recorded.measured(
                "training", {name: value * noise for name, value in RATIOS.items()}, {"samples_per_second": 200 * noise}
            ),
            fingerprint=fingerprint,
            started=f"2026-11-20T12:00:{number:02}",
            commit="a" * 40,
            dirty=False,
            command="pytest",
        )
    hardware = "cpu" if fingerprint is CPU else "nvidia-h200"
    return recorded.accept(folder, recorded.name_of(hardware), "the first")


@pytest.fixture
def baseline(tmp_path: Path) -> Throughput:
    return Throughput.read(record(tmp_path))


def test_as_fast_holds_and_says_what_it_could_see(baseline: Throughput) -> None:
    verdict = compare(baseline, "training", RATIOS, {"samples_per_second": 1.0}, CPU)
    assert (verdict.outcome, len(verdict.grounds)) == ("holds", 2), "absolute figures are not compared on CPUs"
    assert all("(80% power)" in ground for ground in verdict.grounds)


def test_what_could_see_no_loss_does_not_hold(baseline: Throughput) -> None:
    """Two runs far apart: not even a standstill would be below the limit."""
    baseline.runs = baseline.runs[:2]
    for run, value in zip(baseline.runs, (0.5, 1.0), strict=True):
        run.benchmarks["training"].ratios = {RELATIVE: value, ACHIEVED: value}
    verdict = compare(baseline, "training", {RELATIVE: 0.01, ACHIEVED: 0.01}, {}, CPU)
    assert verdict.outcome == "not applicable"
    assert sum("too few runs to see any loss that is possible" in ground for ground in verdict.grounds) == 2
    assert compare(baseline, "training", {RELATIVE: 0.01, ACHIEVED: math.nan}, {}, CPU).outcome == "fails"


@pytest.mark.parametrize(
    ("changes", "observed"),
    [
        ({RELATIVE: 0.9}, "0.9"),
        ({ACHIEVED: 0.25}, "0.25"),
        ({RELATIVE: math.nan}, "nan"),
        ({RELATIVE: -math.inf}, "-inf"),
        ({ACHIEVED: None}, "nothing"),
    ],
)
def test_slower_missing_or_broken_fails(baseline: Throughput, changes: dict[str, Any], observed: str) -> None:
    ratios = {name: value for name, value in (RATIOS | changes).items() if value is not None}
    verdict = compare(baseline, "training", ratios, {}, CPU)
    assert verdict.outcome == "fails"
    assert [finding.observed for finding in verdict.findings] == [observed]
    assert verdict.findings[0].where == "throughput-cpu.json, training"


def test_a_gain_is_no_finding(baseline: Throughput) -> None:
    assert compare(baseline, "training", {RELATIVE: 1.2, ACHIEVED: 0.4}, {}, CPU).outcome == "holds"


@pytest.mark.parametrize(
    ("name", "ratios", "fingerprint", "message"),
    [
        ("evaluation", RATIOS, CPU, "throughput-cpu.json, evaluation: .* was not recorded; record it with"),
        ("training", RATIOS | {"new": 1.0}, CPU, "training: new was not recorded"),
        ("training", RATIOS, GPU, "hardware is 'cpu' there and 'nvidia-h200' in the run"),
    ],
)
def test_what_cannot_be_compared(
    baseline: Throughput, name: str, ratios: dict[str, float], fingerprint: dict[str, Any], message: str
) -> None:
    with pytest.raises(CannotTry, match=message):
        compare(baseline, name, ratios, {}, fingerprint)


def test_on_another_cpu_only_the_side_by_side_ratio_counts(baseline: Throughput) -> None:
    other = CPU | {"threads": 8}
    verdict = compare(baseline, "training", {RELATIVE: 1.0, ACHIEVED: 0.01}, {}, other)
    assert verdict.outcome == "holds"
    assert f"training: {ACHIEVED} not compared: no recorded run has this CPU" in verdict.grounds[0]
    assert compare(baseline, "training", {RELATIVE: 0.9, ACHIEVED: 0.01}, {}, other).outcome == "fails"


def test_rates_are_compared_on_the_same_gpu(tmp_path: Path) -> None:
    baseline = Throughput.read(record(tmp_path, GPU))
    assert compare(baseline, "training", RATIOS, {"samples_per_second": 200}, GPU).outcome == "holds"
    verdict = compare(baseline, "training", RATIOS, {"samples_per_second": 150}, GPU)
    assert [finding.expected.partition(" ")[0] for finding in verdict.findings] == ["samples_per_second"]
    other = GPU | {"fp32_precision": {"matmul": "tf32"}}
    assert compare(baseline, "training", RATIOS, {"samples_per_second": 150}, other).outcome == "holds"


def test_one_recorded_run_has_no_spread(baseline: Throughput) -> None:
    baseline.runs = baseline.runs[:1]
    with pytest.raises(CannotTry, match="needs two or more recorded runs"):
        compare(baseline, "training", RATIOS, {}, CPU)


def test_equal_recordings_leave_room_for_rounding(tmp_path: Path) -> None:
    baseline = Throughput.read(record(tmp_path, deviation=0.0))
    assert compare(baseline, "training", {RELATIVE: 0.99, ACHIEVED: 0.297}, {}, CPU).outcome == "holds"
    assert compare(baseline, "training", {RELATIVE: 0.95, ACHIEVED: 0.297}, {}, CPU).outcome == "fails"


@pytest.mark.nightly
@pytest.mark.parametrize(("mean", "least", "most"), [(1.0, 0.002, 0.02), (0.9, 0.99, 1.0)])
def test_false_alarms_are_as_rare_as_promised_and_a_tenth_is_seen(mean: float, least: float, most: float) -> None:
    """Over many baselines of ten runs with a spread of 1 %: one comparison in a hundred is flagged, a tenth always."""
    random = np.random.default_rng(3)
    trials, flagged = 600, 0
    for _ in range(trials):
        runs = [
            recorded.BenchmarkRun(
                started=f"{number}",
                commit=None,
                dirty=None,
                command="",
                fingerprint=CPU,
                benchmarks={"training": recorded.measured("training", {RELATIVE: value}, {})},
            )
            for number, value in enumerate(random.normal(1, 0.01, RUNS))
        ]
        baseline = Throughput(hardware="cpu", runs=runs)
        flagged += compare(baseline, "training", {RELATIVE: random.normal(mean, 0.01)}, {}, CPU).outcome == "fails"
    assert least <= flagged / trials <= most


def test_a_value_that_is_none_is_not_recorded() -> None:
    with pytest.raises(CannotTry, match=f"benchmark training: ratios.{RELATIVE}: not a finite number"):
        recorded.measured("training", {RELATIVE: math.nan}, {})


def test_benchmarks_of_one_pytest_run_are_one_recording(tmp_path: Path) -> None:
    def add(name: str) -> Path:
        one = recorded.measured(name, RATIOS, {})
        return recorded.add(tmp_path, name, one, started="now", **KNOWN)

    with ThreadPoolExecutor(4) as pool:
        path = next(iter(list(pool.map(add, ("training", "evaluation", "tokenization", "training")))))
    found = Throughput.read(path)
    assert len(found.runs) == 1
    assert found.benchmarks == ["evaluation", "tokenization", "training"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda content: content | {"schema": 2}, r"schema: Input should be 1 \(of a newer harness\?\)"),
        (lambda content: content | {"runs": []}, "runs: List should have at least 1 item"),
        (lambda content: content | {"surprise": 1}, "surprise: Extra inputs are not permitted"),
    ],
)
def test_broken_files(tmp_path: Path, change: Callable[[Any], Any], message: str) -> None:
    path = record(tmp_path)
    path.write_text(json.dumps(change(json.loads(path.read_text()))))
    with pytest.raises(CannotTry, match=rf"baseline .*throughput-cpu\.json: {message}"):
        Throughput.read(path)


def test_of_another_name_is_not_accepted(tmp_path: Path) -> None:
    record(tmp_path)
    path = recorded.add(tmp_path, "training", recorded.measured("training", RATIOS, {}), started="now", **KNOWN)
    path.rename(path.with_stem("throughput-gpu"))
    with pytest.raises(CannotTry, match="is not of throughput-gpu by its contents"):
        recorded.accept(tmp_path, "throughput-gpu", "because")
    with pytest.raises(CannotTry, match="is accepted for a reason"):
        recorded.accept(tmp_path, "throughput-gpu", " ")


def test_the_command_compares_and_accepts(tmp_path: Path) -> None:
    before = record(tmp_path).read_bytes()
    for number in range(RUNS):
        one = recorded.measured("training", RATIOS, {})
        recorded.add(tmp_path, "training", one, started=f"{number}", **KNOWN)
    done = CliRunner().invoke(main, ["--folder", str(tmp_path), "--reason", "newer"])
    assert done.exit_code == 0, done.output
    assert done.output.startswith("throughput  holds\n")
    accepted = Throughput.read(tmp_path / "throughput-cpu.json")
    assert (accepted.reason, accepted.replaces) == ("newer", hashlib.sha256(before).hexdigest())
    assert not list((tmp_path / "candidates").glob("*.json"))


def test_a_candidate_is_compared_by_its_means(tmp_path: Path) -> None:
    record(tmp_path)
    for number, value in enumerate((0.85, 0.95)):
        one = recorded.measured("training", {RELATIVE: value, ACHIEVED: 0.3}, {})
        recorded.add(tmp_path, "training", one, started=f"{number}", **KNOWN)
    done = CliRunner().invoke(main, ["--folder", str(tmp_path)])
    assert done.exit_code == 1, done.output
    assert f"training: {RELATIVE} 0.9, limit " in done.output
    assert ": slower; recorded 1 ± 0.0095 of 10 runs" in done.output
    recorded.add(tmp_path, "new", one, started="2", **KNOWN)
    done = CliRunner().invoke(main, ["--folder", str(tmp_path)])
    assert "was not recorded" in str(done.exception)


def test_a_candidate_that_lacks_a_benchmark_is_not_accepted(tmp_path: Path) -> None:
    """As an interrupted recording, or one with -k, leaves it."""
    record(tmp_path)
    for number in range(RUNS):
        one = recorded.measured("other", RATIOS, {})
        recorded.add(tmp_path, "other", one, started=f"{number}", **KNOWN)
    with pytest.raises(CannotTry, match="has 0 runs of training, expected 10 or more, as many as the baseline"):
        recorded.accept(tmp_path, "throughput-cpu", "because")


def test_a_rate_that_is_no_longer_measured_on_a_gpu_fails(tmp_path: Path) -> None:
    baseline = Throughput.read(record(tmp_path, GPU))
    (finding,) = compare(baseline, "training", RATIOS, {}, GPU).findings
    assert (finding.expected.partition(" ")[0], finding.observed) == ("samples_per_second", "nothing")


def test_one_run_on_a_machine_like_this_is_not_compared(baseline: Throughput) -> None:
    """Nine on one CPU and one on another: the other still has the side-by-side ratio of all ten."""
    other = CPU | {"cpu": "b"}
    baseline.runs[-1].fingerprint = other
    verdict = compare(baseline, "training", RATIOS | {ACHIEVED: 0.1}, {}, other)
    assert verdict.outcome == "holds"
    assert f"{ACHIEVED} not compared" in verdict.grounds[0]


@pytest.mark.parametrize("ratios", [{}, {RELATIVE: 0.0}, {RELATIVE: -1.0}])
def test_what_no_benchmark_can_come_to_is_not_recorded(ratios: dict[str, float]) -> None:
    with pytest.raises(CannotTry, match="benchmark training: ratios"):
        recorded.measured("training", ratios, {})


def test_more_runs_have_a_closer_limit(baseline: Throughput) -> None:
    slower = {RELATIVE: 0.975, ACHIEVED: 0.3}
    assert compare(baseline, "training", slower, {}, CPU).outcome == "holds"
    assert compare(baseline, "training", slower, {}, CPU, runs=20).outcome == "fails"


def test_runs_of_other_machines_are_left_out_of_a_candidates_means(baseline: Throughput) -> None:
    candidate = baseline.model_copy(deep=True)
    candidate.runs = candidate.runs[:2]
    candidate.runs[1].fingerprint = CPU | {"threads": 8}
    candidate.runs[1].benchmarks["training"].ratios[RELATIVE] = 0.1
    (verdict,) = recorded.compare_candidate(baseline, candidate)
    assert verdict.outcome == "holds", verdict.grounds


def interval(ratio: float, half: float = 0.01, blocks: int = 24) -> Interval:
    return Interval(low=ratio - half, high=ratio + half, blocks=blocks)


def side_by_side(baseline: Throughput, ratio: float, **figures: float) -> SpeedVerdict:
    ratios = {RELATIVE: ratio, ACHIEVED: 0.3}
    return compare(baseline, "training", ratios, figures, CPU, intervals={RELATIVE: interval(ratio)})


@pytest.mark.parametrize(
    ("above", "outcome", "told"),
    [
        (-0.02, "fails", "slower"),
        (-0.0099, "not applicable", "cannot tell, about 25 blocks would"),
        (0.005, "not applicable", "cannot tell, about 96 blocks would"),
        (0.02, "holds", "faster or equal"),
    ],
)
def test_three_verdicts_on_what_has_an_interval(baseline: Throughput, above: float, outcome: str, told: str) -> None:
    """``above``: how far the ratio is from the limit; half its interval is 0.01."""
    limit = recorded.limits(baseline, "training", CPU)[RELATIVE]
    assert limit is not None
    ratio = limit.value + above
    verdict = side_by_side(baseline, ratio)
    assert verdict.outcome == outcome
    ends = f"{ratio - 0.01:.4g} to {ratio + 0.01:.4g} in 24 blocks"
    assert f"{RELATIVE} {ratio:.4g} ({ends}), limit {limit.value:.4g}: {told}; recorded" in verdict.grounds[1]
    assert len(verdict.findings) == (outcome == "fails")


def test_what_an_interval_hides_is_no_detectable_loss(baseline: Throughput) -> None:
    """Half of it is added to what the recorded spread hides."""
    limit = recorded.limits(baseline, "training", CPU)[RELATIVE]
    assert limit is not None
    alone = limit.smallest_loss()
    assert limit.smallest_loss(0.01) == pytest.approx(alone + 0.01 / limit.spread.mean)
    assert limit.power(alone) == pytest.approx(limit.power(limit.smallest_loss(0.01), 0.01)) == pytest.approx(0.8)
    assert (
        f"smallest detectable loss {limit.smallest_loss(0.01):.1%} (80% power)"
        in side_by_side(baseline, 0.99).grounds[1]
    )


def test_slower_on_a_busy_machine_cannot_be_told(baseline: Throughput) -> None:
    assert side_by_side(baseline, 0.9, cpu_taken=0.09).outcome == "fails"
    verdict = side_by_side(baseline, 0.9, cpu_taken=0.34)
    assert (verdict.outcome, verdict.findings) == ("not applicable", ())
    assert "cannot tell, the machine was busy, 34% of the CPU taken by others" in verdict.grounds[1]
    without = compare(baseline, "training", {RELATIVE: 0.9, ACHIEVED: 0.2}, {"cpu_taken": 0.34}, CPU)
    assert without.outcome == "not applicable"
    assert [": cannot tell, the machine was busy" in ground for ground in without.grounds] == [True, True]
    missing = compare(baseline, "training", {RELATIVE: 1.0}, {"cpu_taken": 0.34}, CPU)
    assert missing.outcome == "fails", "what was not measured is not the machine's fault"


def test_intervals_are_recorded_and_read_back(tmp_path: Path) -> None:
    one = recorded.measured("training", RATIOS, {}, {RELATIVE: interval(1.0)})
    path = recorded.add(tmp_path, "training", one, started="now", **KNOWN)
    (run,) = Throughput.read(path).runs
    assert run.benchmarks["training"].intervals == {RELATIVE: interval(1.0)}
    with pytest.raises(CannotTry, match=f"benchmark training: the file: the interval of {RELATIVE} is not around it"):
        recorded.measured("training", RATIOS, {}, {RELATIVE: interval(2.0)})


def test_the_interval_of_a_candidates_mean(tmp_path: Path) -> None:
    """Four runs err half as much as one; where one of them has no interval, the mean has none."""
    record(tmp_path)
    for number in range(4):
        one = recorded.measured("training", RATIOS | {RELATIVE: 0.98}, {}, {RELATIVE: interval(0.98)})
        recorded.add(tmp_path, "training", one, started=f"{number}", **KNOWN)
    done = CliRunner().invoke(main, ["--folder", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert done.output.startswith("throughput  not applicable\n")
    assert f"{RELATIVE} 0.98 (0.975 to 0.985 in 96 blocks), limit 0.9821: cannot tell" in done.output
    without = recorded.measured("training", RATIOS | {RELATIVE: 0.98}, {})
    recorded.add(tmp_path, "training", without, started="4", **KNOWN)
    done = CliRunner().invoke(main, ["--folder", str(tmp_path)])
    assert f"{RELATIVE} 0.98, limit" in done.output


SLOWDOWNS = (0.0, 0.03, 0.05, 0.1)


def simulated(random: np.random.Generator, slowdown: float, limit: float | None) -> tuple[float, Interval]:
    """A measurement on a noisy machine; from one process to the next the ratio differs by 0.3 %."""
    ratio = 0.98 / (1 + slowdown) * random.normal(1, 0.003)
    return measure(iter(rounds(random, 1, LOOKS[-1], ratio=ratio)[0]).__next__, limit)


@pytest.mark.nightly
def test_clean_reruns_are_not_flagged_and_slowdowns_are_found() -> None:
    """At the noise of a hosted runner: of 20 clean ones none, and each slowdown as often as stated."""
    random, name = np.random.default_rng(7), "training"
    baseline = Throughput(
        hardware="cpu",
        runs=[
            recorded.BenchmarkRun(
                started=f"{number}",
                commit=None,
                dirty=None,
                command="",
                fingerprint=CPU,
                benchmarks={name: recorded.measured(name, {RELATIVE: simulated(random, 0.0, None)[0]}, {})},
            )
            for number in range(RUNS)
        ],
    )
    limit = recorded.limits(baseline, name, CPU)[RELATIVE]
    assert limit is not None
    found, blocks, halves = {}, {}, []
    for slowdown in SLOWDOWNS:
        runs = [simulated(random, slowdown, limit.value) for _ in range(20)]
        halves += [(interval.high - ratio) * math.sqrt(interval.blocks / LOOKS[-1]) for ratio, interval in runs]
        verdicts = [
            compare(baseline, name, {RELATIVE: ratio}, {}, CPU, intervals={RELATIVE: interval})
            for ratio, interval in runs
        ]
        found[slowdown] = sum(verdict.outcome == "fails" for verdict in verdicts)
        blocks[slowdown] = median(interval.blocks for _, interval in runs)
    stated = {slowdown: limit.power(1 - 1 / (1 + slowdown), median(halves)) for slowdown in SLOWDOWNS}
    assert found[0.0] == 0
    assert stated[0.1] > stated[0.05] > 0.99
    for slowdown, power in stated.items():
        assert found[slowdown] >= binom.ppf(0.001, 20, power), (slowdown, power)
    assert blocks[0.1] == LOOKS[0], "a clear case ends at the first look"


def test_every_recorded_benchmark_is_still_measured() -> None:
    """One that nobody measures any more would never be compared."""
    baseline = Throughput.read(recorded.RECORDS / "throughput-cpu.json")
    assert len(baseline.runs) >= 6
    assert all(run.commit and run.dirty is False for run in baseline.runs)
    measured = {"training", "evaluation", "tokenization", "precision-bf16"}
    assert set(baseline.benchmarks) == {f"{what}-{DEFAULT_RECIPE}" for what in measured}
    sources = "".join(path.read_text() for path in sorted(Path(__file__).parent.glob("test_*.py")))
    kept = set(re.findall(r'name_of\(f?"([^"]+)"', sources))
    assert kept == measured - {"precision-bf16"} | {"precision-{name}"}
    assert "bf16" in UNITS
