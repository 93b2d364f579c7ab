"""What valgrind runs: ``python -m tests.benchmarks.counted ORDER...``, each order one of WAYS, in a fork of its own.

``check+100`` makes the watch dearer: it counts to 100 at each event. What each fork had for a process id, which is in
the names of callgrind's files, is said on stdout, with the fingerprint.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import traceback
from collections.abc import Callable
from itertools import repeat

import torch
import torch._dynamo  # imported by the first optimizer that is made

import harness.watch.instrument  # noqa: F401
from harness import catalogue
from harness.documented_run.stages.trace import Trace
from harness.fingerprint import fingerprint
from harness.watch import watch
from harness.watch.events import Event
from harness.watch.monitor import Monitor
from harness.watch.script import check_script
from tests.benchmarks import counted_loop
from tests.benchmarks.counted_loop import BATCHES, EPOCHS, Loop


def unwatched() -> None:
    Loop().train()


def watched() -> None:
    """As in a long run: no update that is counted is one whose tensors are looked at."""
    with watch(every=2 * EPOCHS * BATCHES) as threads:
        Loop().train()
    assert (threads.findings, threads.notes) == ({}, [])


def check() -> None:
    """As ``harness check`` does it, which looks at the tensors of each of these updates."""
    report = check_script(counted_loop.__file__)
    assert (report.findings, report.not_looked_at, report.notes, report.crashed) == ([], [], [], None)
    assert report.updates == EPOCHS * BATCHES


def trace() -> None:
    """As ``harness run`` looks at its own training."""
    loop = Loop()
    with Trace(loop.model, loop.optimizer, digests=True) as traced:
        loop.train(settle=lambda: traced.events)
    assert len(traced.updates) == EPOCHS * BATCHES


WAYS: dict[str, Callable[[], None]] = {"unwatched": unwatched, "watch": watched, "check": check, "trace": trace}


def made_dearer(turns: int) -> None:
    """Count to ``turns`` before each event is told."""
    emit = Monitor.emit

    def dearer(monitor: Monitor, event: Event) -> None:
        for _ in repeat(None, turns):  # a range makes numbers, of which the small ones cost less
            pass
        emit(monitor, event)

    Monitor.emit = dearer  # type: ignore[method-assign, assignment]


def fork(order: str) -> int:
    """The process id of a fork that does it.

    Raises:
        SystemExit: it failed.
    """
    way, _, turns = order.partition("+")
    if pid := os.fork():
        _, status = os.waitpid(pid, 0)
        if status:
            sys.exit(f"{order} failed with status {os.waitstatus_to_exitcode(status)}")
        return pid
    status = 1
    try:
        if turns:
            made_dearer(int(turns))
        WAYS[way]()
        status = 0
    except BaseException:  # noqa: BLE001 - a fork that fails never comes back
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


def main(orders: list[str]) -> None:
    torch.set_num_threads(1)
    catalogue.checks()
    found = fingerprint("cpu")
    gc.collect()
    print(json.dumps({"pids": {order: fork(order) for order in orders}, "fingerprint": found}))


if __name__ == "__main__":
    main(sys.argv[1:])
