"""The script that measures reruns and slowdowns: its table, and that it goes on where it was."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from harness.documented_run.baseline.files import baseline_path
from harness.errors import CannotTry
from harness.files import write_atomically
from harness.fingerprint import fingerprint
from scripts import reruns
from tests.benchmarks.paired import Interval
from tests.benchmarks.recorded import RECORDS, RELATIVE, BenchmarkRun, measured

ROOT = Path(__file__).parents[1]


def written(path: Path, slowdown: float, limit: float, *, taken: float = 0.0) -> None:
    """What a process of its own leaves."""
    ratio = 1.04 * limit / (1 + slowdown)
    interval = Interval(low=ratio - 0.005, high=ratio + 0.005, blocks=24)
    one = measured(reruns.BENCHMARK, {RELATIVE: ratio}, {"cpu_taken": taken}, {RELATIVE: interval})
    kept: dict[str, Any] = {
        "started": "now",
        "commit": None,
        "dirty": None,
        "command": "",
        "fingerprint": fingerprint("cpu"),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, BenchmarkRun(benchmarks={reruns.BENCHMARK: one}, **kept).model_dump_json())


def test_the_table_and_that_nothing_is_measured_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reruns, "fingerprint", lambda: {"device": "cpu", "device_name": None})
    shutil.copy(baseline_path(RECORDS, "throughput-cpu"), tmp_path)
    made: list[Path] = []
    limits: list[float] = []

    def at_once(target: Any, path: Path, slowdown: float, limit: float) -> None:
        assert target is reruns.measure
        written(path, slowdown, limit, taken=0.5 if path.stem.endswith("0.1-01") else 0.0)
        made.append(path)
        limits.append(limit)

    monkeypatch.setattr(reruns, "in_its_own_process", at_once)
    options = ["--clean", "3", "--slowed", "2", "--baselines", str(tmp_path), "--output", str(tmp_path / "reruns")]
    first = CliRunner().invoke(reruns.main, options)
    assert first.exit_code == 0, first.output
    assert len(made) == 3 + 3 * 2
    table = [[cell.strip() for cell in line.split("|")[1:-1]] for line in first.output.splitlines()[-4:]]
    assert [row[:5] for row in table] == [
        ["none", "3", "0", "0", "3"],
        ["3%", "2", "0", "0", "2"],
        ["5%", "2", "2", "0", "0"],
        ["10%", "2", "1", "1", "0"],
    ]
    ratio = f"{1.04 * limits[0] / 1.1:.3f}"
    assert table[3][5:8] == [f"{ratio} ({ratio} to {ratio})", "24", "1"], "a busy one is not called slower"
    assert float(table[1][8].rstrip("%")) < float(table[3][8].rstrip("%")) == 100
    made[0].unlink()
    again = CliRunner().invoke(reruns.main, options)
    assert again.output == first.output
    assert len(made) == 3 + 3 * 2 + 1


@pytest.mark.nightly
def test_a_slowdown_is_put_into_the_training(tmp_path: Path) -> None:
    reruns.measure(tmp_path / "one.json", 1.0, 0.9, looks=(3,))
    one = reruns.read(tmp_path / "one.json").benchmarks[reruns.BENCHMARK]
    assert one.ratios[RELATIVE] < 0.8
    assert one.intervals[RELATIVE].blocks == 3
    assert one.figures


def test_what_fails_in_its_own_process_is_said() -> None:
    with pytest.raises(CannotTry, match="a measurement ended with status 1"):
        reruns.in_its_own_process(exit, 1)
