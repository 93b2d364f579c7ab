"""What becomes of figures: with a stand-in for pytest-benchmark's fixture and for the machine."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.documented_run.baseline.files import candidate_path
from harness.fingerprint import fingerprint
from tests.benchmarks import contention, throughput_fixture
from tests.benchmarks.benchmark_loops import spin
from tests.benchmarks.conftest import Stopwatch
from tests.benchmarks.paired import Interval
from tests.benchmarks.recorded import RELATIVE, Throughput, accept
from tests.benchmarks.throughput_fixture import Keeper

RATIOS = {RELATIVE: 1.0}


def keeper(folder: Path, *, update: bool = False) -> Keeper:
    warnings: list[Warning] = []
    benchmark = SimpleNamespace(extra_info={}, warnings=warnings)
    return Keeper(benchmark, warnings.append, folder, update, measures=True)


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for number in range(5):
        monkeypatch.setattr(throughput_fixture, "STARTED", f"2026-11-20T12:00:0{number}")
        keeper(tmp_path, update=True)("training", {RELATIVE: 1 + 0.001 * number}, {"samples_per_second": 200.0})
    accept(tmp_path, keeper(tmp_path).path.stem, "a test")
    return tmp_path


def test_each_pytest_run_is_one_recording(recorded: Path) -> None:
    baseline = Throughput.read(keeper(recorded).path)
    assert baseline.counts == {"runs of training": 5}
    assert baseline.runs[0].fingerprint == fingerprint()


def test_as_fast_passes_and_the_grounds_are_kept(recorded: Path) -> None:
    one = keeper(recorded)
    one("training", RATIOS, {"samples_per_second": 200.0}, weights="built in")
    info = one.benchmark.extra_info
    assert info["weights"] == "built in"
    assert info[RELATIVE] == 1.0
    assert info["compared"][0] == "holds"
    assert one.benchmark.warnings == []


def test_slower_fails(recorded: Path) -> None:
    with pytest.raises(pytest.fail.Exception, match=r"expected  ours_per_document .* or more"):
        keeper(recorded)("training", {RELATIVE: 0.9}, {})


def test_what_cannot_be_told_is_a_warning(recorded: Path) -> None:
    one = keeper(recorded)
    limit = one.limit("training")
    assert limit is not None
    assert limit == pytest.approx(0.98, abs=0.01)
    one("training", {RELATIVE: limit}, {}, {RELATIVE: Interval(low=limit - 0.01, high=limit + 0.02, blocks=96)})
    assert one.benchmark.extra_info["compared"][0] == "not applicable"
    assert "cannot tell" in str(one.benchmark.warnings[0])


def test_intervals_are_recorded(recorded: Path) -> None:
    interval = Interval(low=0.9, high=1.1, blocks=12)
    keeper(recorded, update=True)("training", RATIOS, {}, {RELATIVE: interval})
    (run,) = Throughput.read(candidate_path(recorded, keeper(recorded).path.stem)).runs
    assert run.benchmarks["training"].intervals == {RELATIVE: interval}


def test_there_is_no_limit_where_nothing_is_compared(tmp_path: Path, recorded: Path) -> None:
    assert keeper(recorded, update=True).limit("training") is None
    assert keeper(tmp_path / "empty").limit("training") is None
    assert keeper(recorded).limit("evaluation") is None
    assert keeper(recorded).limit("training", "map_per_tokenizer") is None


class Benchmark(SimpleNamespace):
    """pytest-benchmark's fixture with a clock, as far as a stopwatch uses it."""

    def pedantic(self, target: Any, rounds: int) -> None:
        self.stats = SimpleNamespace(stats=SimpleNamespace(data=[0.0] * rounds))
        target()


def test_pytest_benchmark_gets_the_rounds_of_our_side(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contention, "others", lambda: {contention.TAKEN: 0.5})
    warnings: list[Warning] = []
    said: list[str] = []
    pytests = {
        "capturemanager": SimpleNamespace(global_and_fixture_disabled=nullcontext),
        "terminalreporter": SimpleNamespace(ensure_newline=lambda: None, write_line=said.append),
    }
    config: Any = SimpleNamespace(pluginmanager=SimpleNamespace(getplugin=pytests.get))
    benchmark, device = Benchmark(disabled=False, extra_info={}, name="a test"), SimpleNamespace(synchronize=int)
    stopwatch = Stopwatch(benchmark, config, warnings.append)
    found = stopwatch(lambda: spin(0.001), lambda: spin(0.002), device, limit=1.0)
    assert found is not None
    assert said == ["a test: before anything is timed: the machine was busy, 50% of the CPU taken by others"]
    assert benchmark.stats.stats.data == found.ours
    assert benchmark.extra_info["reference_seconds"] == found.reference
    assert benchmark.extra_info["interval"] == found.interval.model_dump()
    quiet = replace(found, machine={})
    stopwatch.hold(quiet, 0.5)
    assert warnings == []
    stopwatch.hold(quiet, found.ratio)
    assert "cannot tell" in str(warnings[0])
    with pytest.raises(pytest.fail.Exception, match="limit 100: slower"):
        stopwatch.hold(quiet, 100.0)


def test_what_was_not_recorded_fails(recorded: Path) -> None:
    with pytest.raises(pytest.fail.Exception, match="evaluation: ours_per_document was not recorded"):
        keeper(recorded)("evaluation", RATIOS, {})


def test_what_is_not_compared_is_said(tmp_path: Path, recorded: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    none = keeper(tmp_path / "empty")
    none("training", RATIOS, {})
    assert "training not compared: no baseline" in str(none.benchmark.warnings[0])
    with pytest.raises(pytest.skip.Exception, match="no baseline"):
        none.needs_baseline()
    monkeypatch.setattr(throughput_fixture, "STARTED", "later")
    for _ in range(2):
        keeper(tmp_path / "other", update=True)("bare", {"map_per_tokenizer": 0.3}, {})
        monkeypatch.setattr(throughput_fixture, "STARTED", "later still")
    accept(tmp_path / "other", keeper(tmp_path).path.stem, "a test")
    elsewhere = keeper(tmp_path / "other")
    elsewhere.fingerprint = fingerprint() | {"threads": 99}
    elsewhere("bare", {"map_per_tokenizer": 0.3}, {})
    assert "bare: map_per_tokenizer not compared" in str(elsewhere.benchmark.warnings[0])
    assert elsewhere.benchmark.extra_info["compared"][0] == "not applicable"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, False),
        ({"benchmark_only": True}, True),
        ({"benchmark_json": "file"}, True),
        ({"benchmark_skip": True}, False),
    ],
)
def test_the_clock_is_read_when_asked_for(options: dict[str, object], expected: bool) -> None:
    config: Any = SimpleNamespace(getoption=lambda name, default=None: options.get(name, default))
    assert throughput_fixture.measures(config) is expected


def test_ordinary_runs_read_no_clock(benchmark: Any, pytestconfig: pytest.Config) -> None:
    benchmark(lambda: None)
    assert benchmark.disabled or throughput_fixture.measures(pytestconfig)
