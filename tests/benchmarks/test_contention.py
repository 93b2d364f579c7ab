"""Whether the machine was busy: from counters, read at the start and the end."""

from __future__ import annotations

import subprocess
import sys
import time
from collections import namedtuple
from types import SimpleNamespace

import psutil
import pytest

from tests.benchmarks import contention
from tests.benchmarks.contention import LOAD, MOST_TAKEN, STOLEN, TAKEN, Meter, Times, busy

LINUX = namedtuple("LINUX", "user nice system idle iowait irq softirq steal guest guest_nice")


class Counters:
    """A system with two CPUs."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.own = dict.fromkeys(LINUX._fields, 0.0), 0.0
        monkeypatch.setattr(psutil, "cpu_times", lambda: LINUX(**self.now))
        monkeypatch.setattr(
            psutil, "Process", lambda: SimpleNamespace(cpu_times=lambda: (self.own, 0.0, 0.0, 0.0, 9.0))
        )
        monkeypatch.setattr(psutil, "getloadavg", lambda: (3.0, 1.0, 1.0))
        monkeypatch.setattr(psutil, "cpu_count", lambda: 2)

    def pass_by(self, own: float = 0.0, **seconds: float) -> None:
        self.own += own
        self.now["user"] += own
        for name, more in seconds.items():
            self.now[name] += more


@pytest.fixture
def counters(monkeypatch: pytest.MonkeyPatch) -> Counters:
    return Counters(monkeypatch)


def test_what_others_took_is_all_but_idle_and_ones_own(counters: Counters) -> None:
    counters.pass_by(own=7.0, idle=100.0)
    meter = Meter()
    counters.pass_by(own=5.0, user=1.0, nice=0.5, system=0.5, softirq=0.25, steal=0.75, idle=1.5, iowait=0.5)
    assert meter.figures() == pytest.approx({TAKEN: 0.3, STOLEN: 0.075, LOAD: 1.5})


def test_what_a_guest_uses_is_counted_once(counters: Counters) -> None:
    meter = Meter()
    counters.pass_by(user=4.0, guest=4.0, idle=4.0)
    assert meter.figures()[TAKEN] == pytest.approx(0.5)


def test_clocks_that_tick_apart_leave_a_share(counters: Counters) -> None:
    meter = Meter()
    counters.pass_by(own=1.0, idle=1.0)
    counters.own += 0.01
    assert meter.figures()[TAKEN] == 0


def test_systems_that_tell_no_cpu_times(counters: Counters, monkeypatch: pytest.MonkeyPatch) -> None:
    def hidden() -> None:
        raise PermissionError("/proc/stat")

    monkeypatch.setattr(psutil, "cpu_times", hidden)
    assert Times.now() is None
    assert Meter().figures() == {LOAD: 1.5}
    monkeypatch.delattr(psutil, "getloadavg")
    assert Meter().figures() == {}


@pytest.mark.parametrize(
    ("figures", "said"),
    [
        ({TAKEN: 0.34, LOAD: 0.1}, "the machine was busy, 34% of the CPU taken by others"),
        ({TAKEN: MOST_TAKEN - 0.001, LOAD: 9.0}, None),
        ({LOAD: 1.6}, "the machine was busy, 1.6 processes ran or waited for each CPU"),
        ({LOAD: 1.5}, None),
        ({}, None),
    ],
)
def test_from_where_on_a_machine_is_busy(figures: dict[str, float], said: str | None) -> None:
    assert busy(figures) == said


def test_another_process_is_seen() -> None:
    """Of this real machine, whatever else it does: one CPU's worth at least, but for what starts and ends late."""
    if Times.now() is None:
        pytest.skip("this system tells no CPU times")
    worker = subprocess.Popen([sys.executable, "-c", "print(flush=True)\nwhile True: pass"], stdout=subprocess.PIPE)
    assert worker.stdout is not None
    try:
        worker.stdout.readline()
        found = contention.others()
    finally:
        worker.kill()
        worker.wait()
        worker.stdout.close()
    assert found[TAKEN] * psutil.cpu_count() > 0.5
    assert LOAD not in found


def test_ones_own_work_is_not_anothers() -> None:
    meter, end = Meter(), time.process_time() + 0.5
    while time.process_time() < end:
        pass
    start, now = meter.start, Times.now()
    if start is None or now is None:
        pytest.skip("this system tells no CPU times")
    whole, used = now.whole - start.whole, 0.5
    assert meter.figures()[TAKEN] <= 1 - used / whole + 0.05
