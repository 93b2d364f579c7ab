"""What the suite costs: CPU and wall seconds by file, beside the table that is kept in ``baselines/suite.json``.

    pytest --budget=show       # prints the dearest files at the end, and by how much the ring grew; fails at double
    pytest --budget=keep       # and keeps the table

A test's CPU seconds are those of its process and of all that it started, so that a machine that does something else
changes them little. What another processor changes, a calibration tells: the seconds that a fixed computation takes.
Wall seconds beyond them are what a test waits: for processes that end, and for other workers.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cached_property
from operator import itemgetter
from pathlib import Path
from typing import Any

import psutil
import pytest

ROOT = Path(__file__).parents[1]
TABLE = ROOT / "baselines" / "suite.json"

GROWN, DOUBLE = 1.15, 2.0
"""How many times their recorded CPU seconds all tests may take before that is said, and before it fails."""

LEAST = 2.0
"""CPU seconds by which a file must have grown to be named: of a small one, a busy machine makes half as much again."""

SHOWN = 25
"""Files in the table that is printed."""

NAMED = 10
"""Files that grew, at most."""

OWN = pytest.StashKey["Budget"]()
CPU, NIGHTLY = "cpu_seconds", "nightly"
RINGS = ("extras", NIGHTLY)
"""What a file's name begins with in the table, where its tests are not of the first ring in README's environment."""


def file_of(nodeid: str) -> str:
    """The file that a test is in, seen from ``tests``; of a check's examples the family.

    In the table nightly tests, and those that need more than README installs, are files of their own.
    """
    file = nodeid.partition("::")[0].removeprefix("tests/")
    return file.removesuffix("/corpus.toml").rpartition("/")[0] if file.endswith("/corpus.toml") else file


def seconds_of_the_tree() -> float:
    """CPU seconds of this process and of all that it started, ended or not."""
    this = psutil.Process()
    total = 0.0
    for process in (this, *this.children(recursive=True)):
        try:
            times = process.cpu_times()
        except psutil.Error:  # it has ended since; its parent has its seconds, the next time
            continue
        total += times.user + times.system + times.children_user + times.children_system
    return total


def calibration() -> float:
    """CPU seconds of a fixed computation of the interpreter's and of one on long rows of numbers."""
    begun = time.process_time()
    numbers: Counter[int] = Counter()
    for number in range(1_000_000):
        numbers[number * 7919 % 1024] += number
    data = bytes(range(256)) * 40_000
    for _ in range(20):
        data = data.translate(bytes(reversed(range(256))))
    return time.process_time() - begun


class Budget:
    """Sums the seconds that the tests' reports bring."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        """CPU seconds by file."""
        self.wall: defaultdict[str, float] = defaultdict(float)
        self.tests: Counter[str] = Counter()
        self.each: dict[str, tuple[float, float]] = {}
        """CPU and wall seconds by test."""
        self._lasted: defaultdict[str, float] = defaultdict(float)

    @cached_property
    def calibrated(self) -> float:
        """What this machine takes for the calibration: the least of three, when the tests are over."""
        return min(calibration() for _ in range(3))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._lasted[report.nodeid] += report.duration
        for name, value in report.user_properties if report.when == "teardown" else ():
            if name.endswith(CPU):
                assert isinstance(value, float)
                file, wall = name.removesuffix(CPU) + file_of(report.nodeid), self._lasted.pop(report.nodeid)
                self.seconds[file] += value
                self.wall[file] += wall
                self.tests[file] += 1
                self.each[report.nodeid] = value, round(wall, 3)

    def recorded(self, table: dict[str, Any], calibrated: float) -> dict[str, float]:
        """The CPU seconds of each file of these rings, as this machine would have taken them."""
        factor, rings = calibrated / table["calibration"], {ring_of(file) for file in self.seconds}
        return {file: row["seconds"] * factor for file, row in table["files"].items() if ring_of(file) in rings}

    def share(self, table: dict[str, Any], calibrated: float) -> float:
        """How many times the recorded CPU seconds all of them took; 1 where nothing is recorded of their ring."""
        before = sum(self.recorded(table, calibrated).values())
        return sum(self.seconds.values()) / before if before else 1.0

    def grown(self, table: dict[str, Any], calibrated: float) -> list[str]:
        """By how much the whole grew; the files that did, the most first, where that is more than 15 %."""
        recorded, share = self.recorded(table, calibrated), self.share(table, calibrated)
        before, now, wall = (sum(each.values()) for each in (recorded, self.seconds, self.wall))
        rings = ", ".join(sorted({ring_of(file) or "first" for file in self.seconds}))
        lines = [
            f"ring {rings}: {now:.0f} CPU seconds, recorded {before:.0f}: {share - 1:+.0%}; {wall:.0f} s of workers"
        ]
        if share <= GROWN:
            return lines
        more = {file: seconds - recorded.get(file, 0.0) for file, seconds in self.seconds.items()}
        named = sorted((file for file in more if more[file] >= LEAST), key=lambda file: -more[file])[:NAMED]
        return lines + [
            f"grown: {file}: {self.seconds[file]:.0f} s, recorded {recorded.get(file, 0.0):.0f} s" for file in named
        ]


def ring_of(file: str) -> str:
    first = file.partition(" ")[0]
    return first if first in RINGS else ""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("budget", "what the suite costs")
    group.addoption(
        "--budget",
        choices=["show", "keep"],
        help="seconds by file of tests beside the recorded ones: show them and fail where all together have doubled, "
        "or keep them",
    )
    group.addoption("--budget-ring", choices=RINGS, help="with --budget: the ring of tests that are not nightly")
    group.addoption("--budget-grown", metavar="FILE", help="with --budget: add to this file by how much they grew")
    group.addoption("--budget-tests", metavar="FILE", help="with --budget: the seconds of each test, as JSON")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("budget"):
        config.stash[OWN] = Budget()
        config.pluginmanager.register(config.stash[OWN], "budget-of-the-session")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    if OWN in item.config.stash:
        item.stash[_BEGUN] = seconds_of_the_tree()
    return (yield)


_BEGUN = pytest.StashKey[float]()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    if OWN in item.config.stash:
        ring = NIGHTLY if item.get_closest_marker(NIGHTLY) else item.config.getoption("budget_ring")
        name = f"{ring} {CPU}" if ring else CPU
        item.user_properties.append((name, round(seconds_of_the_tree() - item.stash[_BEGUN], 3)))


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    budget = config.stash.get(OWN, None)
    if budget is None or not budget.seconds:
        return
    calibrated = budget.calibrated
    recorded = _recorded(calibrated)
    factor = calibrated / recorded["calibration"]
    terminalreporter.section("seconds by file of tests")
    terminalreporter.write_line(f"{'file':<60}{'tests':>6}{'CPU':>8}{'wall':>8}{'recorded':>10}")
    dearest = sorted(budget.seconds.items(), key=itemgetter(1), reverse=True)
    for file, seconds in dearest[:SHOWN]:
        kept = recorded["files"].get(file)
        shown = f"{kept['seconds'] * factor:10.0f}" if kept else f"{'-':>10}"
        terminalreporter.write_line(f"{file:<60}{budget.tests[file]:>6}{seconds:8.0f}{budget.wall[file]:8.0f}{shown}")
    terminalreporter.write_line(f"and {len(dearest[SHOWN:])} files, {sum(each for _, each in dearest[SHOWN:]):.0f} s")
    terminalreporter.write_line(
        f"calibration {calibrated:.2f} s, recorded {recorded['calibration']:.2f} s: what is recorded is shown times "
        f"{factor:.2f}"
    )
    lines = budget.grown(recorded, calibrated)
    for number, line in enumerate(lines):
        terminalreporter.write_line(line, red=number > 0)
    if grown := config.getoption("budget_grown"):
        with open(grown, "a", encoding="utf-8") as summary:
            summary.writelines(f"{line}\n" for line in lines)
    if each := config.getoption("budget_tests"):
        Path(each).write_text(json.dumps(budget.each, indent=0), encoding="utf-8")
    if config.getoption("budget") == "keep":
        _keep(budget, calibrated)


def _recorded(calibrated: float) -> dict[str, Any]:
    table: dict[str, Any] = {"calibration": calibrated, "files": {}}
    return json.loads(TABLE.read_text()) if TABLE.exists() else table


def _keep(budget: Budget, calibrated: float) -> None:
    files = {
        file: {"tests": budget.tests[file], "seconds": round(seconds, 1), "wall": round(budget.wall[file], 1)}
        for file, seconds in budget.seconds.items()
    }
    rings = {ring_of(file) for file in files}
    others = {file: row for file, row in _recorded(calibrated)["files"].items() if ring_of(file) not in rings}
    table = {"calibration": round(calibrated, 3), "files": dict(sorted({**others, **files}.items()))}
    temporary = TABLE.with_suffix(".new")
    temporary.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")
    os.replace(temporary, TABLE)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    config = session.config
    if config.getoption("budget") != "show" or hasattr(config, "workerinput") or session.exitstatus:
        return
    budget = config.stash[OWN]
    if budget.share(_recorded(budget.calibrated), budget.calibrated) > DOUBLE:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
