"""What the suite costs: CPU seconds by kind of test, beside the table that is kept in ``baselines/suite.json``.

    pytest --budget=show       # prints the table at the end
    pytest --budget=keep       # and keeps it
    pytest --budget=strict     # fails where the whole has grown by more than 15 %, and names the kinds

A test's seconds are those of its process and of all that it started, so that a machine that does something else changes
them little. What another processor changes, a calibration tells: the seconds that a fixed computation takes.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from operator import itemgetter
from pathlib import Path
from typing import Any

import psutil
import pytest

ROOT = Path(__file__).parents[1]
TABLE = ROOT / "baselines" / "suite.json"

GROWN = 1.15
"""How many times their recorded seconds all tests may take."""

LEAST = 5.0
"""Seconds by which a kind must have grown to be named: of a small one, a busy machine makes half as much again."""

OWN = pytest.StashKey["Budget"]()
CPU, NIGHTLY = "cpu_seconds", "nightly"
RINGS = ("extras", NIGHTLY)
"""What a kind's name begins with in the table, where it is not of the first ring in README's environment."""


def kind_of(nodeid: str) -> str:
    """The folder of ``tests`` that a test is in; the file, if that lies in ``tests`` itself.

    In the table nightly tests, and those that need more than README installs, are kinds of their own.
    """
    return nodeid.partition("::")[0].split("/")[1].removesuffix(".py")


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
        self.tests: Counter[str] = Counter()
        self.each: dict[str, tuple[float, float]] = {}
        self.wall: defaultdict[str, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.wall[report.nodeid] += report.duration
        for name, value in report.user_properties if report.when == "teardown" else ():
            if name.endswith(CPU):
                assert isinstance(value, float)
                kind = name.removesuffix(CPU) + kind_of(report.nodeid)
                self.seconds[kind] += value
                self.tests[kind] += 1
                self.each[report.nodeid] = value, round(self.wall[report.nodeid], 3)

    def recorded(self, table: dict[str, Any], calibrated: float) -> dict[str, float]:
        """The seconds of each kind of these rings, as this machine would have taken them."""
        factor, rings = calibrated / table["calibration"], {ring_of(kind) for kind in self.seconds}
        return {kind: row["seconds"] * factor for kind, row in table["kinds"].items() if ring_of(kind) in rings}

    def grown(self, table: dict[str, Any], calibrated: float) -> list[str]:
        """By how much the whole grew; the kinds that did, the most first, where that is more than 15 %."""
        recorded = self.recorded(table, calibrated)
        before, now = sum(recorded.values()), sum(self.seconds.values())
        share = now / before if before else 1.0
        rings = ", ".join(sorted({ring_of(kind) or "first" for kind in self.seconds}))
        lines = [f"ring {rings}: {now:.0f} CPU seconds, recorded {before:.0f}: {share - 1:+.0%}"]
        if share <= GROWN:
            return lines
        more = {kind: seconds - recorded.get(kind, 0.0) for kind, seconds in self.seconds.items()}
        named = sorted((kind for kind in more if more[kind] >= LEAST), key=lambda kind: -more[kind])
        return lines + [
            f"grown: {kind}: {self.seconds[kind]:.0f} s, recorded {recorded.get(kind, 0.0):.0f} s" for kind in named
        ]


def ring_of(kind: str) -> str:
    first = kind.partition(" ")[0]
    return first if first in RINGS else ""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("budget", "what the suite costs")
    group.addoption(
        "--budget",
        choices=["show", "keep", "strict"],
        help="CPU seconds by kind of test beside the recorded ones: show them, keep them, or fail where all "
        "together have grown by more than 15 %",
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
    calibrated = min(calibration() for _ in range(3))
    recorded: dict[str, Any] = (
        json.loads(TABLE.read_text()) if TABLE.exists() else {"calibration": calibrated, "kinds": {}}
    )
    factor = calibrated / recorded["calibration"]
    terminalreporter.section("CPU seconds by kind of test")
    terminalreporter.write_line(f"{'kind':<28}{'tests':>6}{'now':>8}{'recorded':>10}")
    for kind, seconds in sorted(budget.seconds.items(), key=itemgetter(1), reverse=True):
        kept = recorded["kinds"].get(kind)
        shown = f"{kept['seconds'] * factor:10.0f}" if kept else f"{'-':>10}"
        terminalreporter.write_line(f"{kind:<28}{budget.tests[kind]:>6}{seconds:8.0f}{shown}")
    terminalreporter.write_line(
        f"calibration {calibrated:.2f} s, recorded {recorded['calibration']:.2f} s: what is recorded is shown times "
        f"{factor:.2f}"
    )
    lines = budget.grown(recorded, calibrated)
    for number, line in enumerate(lines):
        terminalreporter.write_line(line, red=number > 0)
    if grown := config.getoption("budget_grown"):
        with open(grown, "a", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in lines)
    if each := config.getoption("budget_tests"):
        Path(each).write_text(json.dumps(budget.each, indent=0), encoding="utf-8")
    if config.getoption("budget") == "keep":
        _keep(budget, calibrated)


def _keep(budget: Budget, calibrated: float) -> None:
    kinds = {
        kind: {"tests": budget.tests[kind], "seconds": round(seconds, 1)}
        for kind, seconds in sorted(budget.seconds.items())
    }
    rings = {ring_of(kind) for kind in kinds}
    recorded = json.loads(TABLE.read_text())["kinds"] if TABLE.exists() else {}
    others = {kind: row for kind, row in recorded.items() if ring_of(kind) not in rings}
    table = {"calibration": round(calibrated, 3), "kinds": dict(sorted({**others, **kinds}.items()))}
    temporary = TABLE.with_suffix(".new")
    temporary.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")
    os.replace(temporary, TABLE)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    config = session.config
    strict = config.getoption("budget") == "strict" and TABLE.exists() and not hasattr(config, "workerinput")
    if (
        strict
        and len(config.stash[OWN].grown(json.loads(TABLE.read_text()), calibration())) > 1
        and not session.exitstatus
    ):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
