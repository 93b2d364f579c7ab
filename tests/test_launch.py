"""Several processes: what they return, and how they end when one of them fails, dies or hangs."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError, ProcessFailure

from harness import launch
from harness.errors import CannotTry
from harness.launch import in_processes
from tests import ranks

pytestmark = pytest.mark.distributed

PATIENCE = 4.0

MEETING = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"}


def processes_of(name: str) -> list[str]:
    """The processes that have ``name`` in their environment, without Python's own helper, which ends with this one."""
    found = []
    for environment in Path("/proc").glob("[0-9]*/environ"):
        try:
            helper = b"resource_tracker" in environment.with_name("cmdline").read_bytes()
            if name.encode() in environment.read_bytes() and not helper:
                found.append(environment.parent.name)
        except OSError:  # it ended meanwhile, or is somebody else's
            continue
    return [pid for pid in found if int(pid) != os.getpid()]


@pytest.mark.nightly
def test_results_come_in_the_order_of_the_ranks() -> None:
    assert in_processes(ranks.numbers, processes=2) == [[0, 10], [0, 10]]


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (ranks.one_raises, r"rank 1: ValueError: no such label \(.*ranks\.py:\d+\)"),
        (ranks.one_is_killed, r"rank 1 died of SIGKILL; all ranks were ended"),
        *(
            pytest.param(*each, marks=pytest.mark.nightly)
            for each in (
                (ranks.one_cannot_try, r"^data folder nowhere not found$"),
                (ranks.one_exits, r"rank 1 ended with exit status 3 and no error; all ranks were ended"),
                (
                    ranks.one_hangs_below_python,
                    r"hung for 4 s: rank 1 without a trace; all ranks were ended \(rank 0 at .*\)",
                ),
                (ranks.one_hangs, r"hung for 4 s: rank 1 at .*ranks\.py:\d+ in one_hangs; all ranks were ended"),
            )
        ),
    ],
)
def test_one_rank_ends_all(function: Callable[[], Any], says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARNESS_TEST_RANKS", mark := f"{function.__name__}-{os.getpid()}")
    began = time.monotonic()
    with pytest.raises(CannotTry) as error:
        in_processes(function, processes=2, patience=PATIENCE)
    assert re.search(says, str(error.value)), error.value
    # The stated time, and what starting two processes takes where others are at work.
    assert time.monotonic() - began < PATIENCE + launch.GRACE + 60
    if Path("/proc/self/environ").exists():
        assert not processes_of(f"HARNESS_TEST_RANKS={mark}")


def test_accelerate_launch_starts_one_of_two(tmp_path: Path) -> None:
    """What Accelerate 1.15 does without a word on CPUs; here it is noticed. Should it start two, nothing is said."""
    script = tmp_path / "asked.py"
    script.write_text(
        "from harness.launch import fewer_than_asked, world_size\nprint(world_size(), fewer_than_asked())"
    )
    command = [sys.executable, "-m", "accelerate.commands.launch", "--cpu", "--num_processes", "2", str(script)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "accelerate launch was asked for several processes but started one" in printed or printed.startswith(
        "2 None"
    )


@pytest.mark.parametrize(
    ("environment", "noticed"),
    [
        ({}, False),
        ({"MASTER_PORT": "29500"}, False),  # a cluster's own, without accelerate launch
        ({"ACCELERATE_MIXED_PRECISION": "no"}, False),  # accelerate launch with one process
        ({"ACCELERATE_MIXED_PRECISION": "no", "MASTER_PORT": "29500"}, False),  # both
        ({"ACCELERATE_MIXED_PRECISION": "no", **MEETING}, True),
        ({"ACCELERATE_MIXED_PRECISION": "no", **MEETING, "WORLD_SIZE": "2", "RANK": "0"}, False),
    ],
)
def test_fewer_than_asked(environment: dict[str, str], noticed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ACCELERATE_MIXED_PRECISION", "MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert bool(launch.fewer_than_asked()) is noticed


@pytest.mark.parametrize(("ranks", "stays"), [(None, False), ("2", True)])
def test_a_rank_that_was_interrupted_hears_no_further_signal(
    ranks: str | None, stays: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its launcher sends on what the terminal sent already, also while it shuts down."""
    if ranks is not None:
        monkeypatch.setenv("WORLD_SIZE", ranks)
    before = signal.getsignal(signal.SIGTERM)
    try:
        with pytest.raises(KeyboardInterrupt), launch.interrupted_once([signal.SIGTERM]):
            signal.raise_signal(signal.SIGTERM)
        assert (signal.getsignal(signal.SIGTERM) == signal.SIG_IGN) == stays
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_rank_that_runs_on_after_the_first_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "LATE", 0.5)
    with pytest.raises(CannotTry, match="rank 1 of 2 did not end with the first rank, so it was ended"):
        launch.command_in_processes(
            ["-c", "import os, time; time.sleep(2 + 60 * int(os.environ['RANK']))"], processes=2
        )


def test_a_first_rank_that_had_to_be_killed_has_said_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its status may be that of the rank that died first."""
    died = {rank: ProcessFailure(rank, 1, -9, error_file="absent") for rank in (1, 0)}
    died[0].timestamp += 30

    def launched(*_: object) -> None:
        raise ChildFailedError("train.py", died)

    monkeypatch.setattr(launch, "_launched", launched)
    with pytest.raises(CannotTry, match="rank 1 of 2 ended with SIGKILL; all ranks were ended"):
        launch.command_in_processes(["train.py"], processes=2)


@pytest.mark.parametrize(
    ("said", "wants"),
    [
        ("ValueError: ... rendezvous: environment variable RANK expected, but not set", True),
        ("KeyError: 'LOCAL_RANK'", True),
        ("KeyError: 'rank'", False),
    ],
)
def test_a_script_that_wants_a_launcher_says_so(said: str, wants: bool) -> None:
    assert launch.wants_a_launcher(f"Traceback ...\n{said}\n") == wants
