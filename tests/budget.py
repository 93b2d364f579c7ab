"""What the suite costs: CPU seconds by kind of test, beside the table that is kept in ``baselines/suite.json``.

    pytest --budget=show       # prints the table at the end
    pytest --budget=keep       # and keeps it
    pytest --budget=strict     # fails where a kind has grown by more than half

A test's seconds are those of its process and of all that it started, so that a machine that does something else changes
them little. What another processor changes, a calibration tells: the seconds that a fixed computation takes.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

ROOT = Path(__file__).parents[1]
TABLE = ROOT / "baselines" / "suite.json"

GROWN = 1.5
"""How many times its recorded seconds a kind of test may take."""

LEAST = 10.0
"""Seconds that a kind may grow by in any case: of a small one, a busy machine makes half as much again."""

OWN = pytest.StashKey["Budget"]()
CPU, NIGHTLY = "cpu_seconds", "nightly"


def kind_of(nodeid: str) -> str:
    """The folder of ``tests`` that a test is in; the file, if that lies in ``tests`` itself.

    In the table a nightly test's kind is one of its own.
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
        self.seconds: Counter[str] = Counter()
        self.tests: Counter[str] = Counter()
        self.each: dict[str, float] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        for name, value in report.user_properties if report.when == "teardown" else ():
            if name in (CPU, f"{NIGHTLY} {CPU}"):
                kind = name.removesuffix(CPU) + kind_of(report.nodeid)
                self.seconds[kind] += value
                self.tests[kind] += 1
                self.each[report.nodeid] = value

    def grown(self, recorded: dict[str, Any], calibrated: float) -> list[str]:
        """The kinds that take more than half as much again as is recorded, by this machine's measure."""
        factor = calibrated / recorded["calibration"]
        kept = {kind: row["seconds"] * factor for kind, row in recorded["kinds"].items()}
        return [
            f"{kind}: {seconds:.0f} s, recorded {kept.get(kind, 0.0):.0f} s"
            for kind, seconds in sorted(self.seconds.items())
            if seconds > GROWN * kept.get(kind, 0.0) and seconds > kept.get(kind, 0.0) + LEAST
        ]


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("budget", "what the suite costs")
    group.addoption(
        "--budget",
        choices=["show", "keep", "strict"],
        help="CPU seconds by kind of test beside the recorded ones: show them, keep them as recorded, or fail where a "
        "kind has grown by more than half",
    )
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
        name = f"{NIGHTLY} {CPU}" if item.get_closest_marker(NIGHTLY) else CPU
        item.user_properties.append((name, round(seconds_of_the_tree() - item.stash[_BEGUN], 3)))


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    budget = config.stash.get(OWN, None)
    if budget is None or not budget.seconds:
        return
    calibrated = min(calibration() for _ in range(3))
    recorded = json.loads(TABLE.read_text()) if TABLE.exists() else {"calibration": calibrated, "kinds": {}}
    factor = calibrated / recorded["calibration"]
    terminalreporter.section("CPU seconds by kind of test")
    terminalreporter.write_line(f"{'kind':<28}{'tests':>6}{'now':>8}{'recorded':>10}")
    for kind, seconds in budget.seconds.most_common():
        kept = recorded["kinds"].get(kind)
        shown = f"{kept['seconds'] * factor:10.0f}" if kept else f"{'-':>10}"
        terminalreporter.write_line(f"{kind:<28}{budget.tests[kind]:>6}{seconds:8.0f}{shown}")
    whole = sum(row["seconds"] for kind, row in recorded["kinds"].items() if kind in budget.seconds) * factor
    terminalreporter.write_line(f"{'in all':<28}{budget.tests.total():>6}{budget.seconds.total():8.0f}{whole:10.0f}")
    terminalreporter.write_line(
        f"calibration {calibrated:.2f} s, recorded {recorded['calibration']:.2f} s: what is recorded is shown times "
        f"{factor:.2f}"
    )
    for line in budget.grown(recorded, calibrated):
        terminalreporter.write_line(f"grown by more than half: {line}", red=True)
    if file := config.getoption("budget_tests"):
        Path(file).write_text(json.dumps(budget.each, indent=0), encoding="utf-8")
    if config.getoption("budget") == "keep":
        _keep(budget, calibrated)


def _keep(budget: Budget, calibrated: float) -> None:
    kinds = {
        kind: {"tests": budget.tests[kind], "seconds": round(seconds, 1)}
        for kind, seconds in sorted(budget.seconds.items())
    }
    of_this_ring = next(iter(kinds)).startswith(NIGHTLY)
    recorded = json.loads(TABLE.read_text())["kinds"] if TABLE.exists() else {}
    others = {kind: row for kind, row in recorded.items() if kind.startswith(NIGHTLY) != of_this_ring}
    table = {"calibration": round(calibrated, 3), "kinds": dict(sorted({**others, **kinds}.items()))}
    temporary = TABLE.with_suffix(".new")
    temporary.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")
    os.replace(temporary, TABLE)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    config = session.config
    strict = config.getoption("budget") == "strict" and TABLE.exists() and not hasattr(config, "workerinput")
    if strict and config.stash[OWN].grown(json.loads(TABLE.read_text()), calibration()) and not session.exitstatus:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
