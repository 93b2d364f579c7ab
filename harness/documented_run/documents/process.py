"""The process in which a document's blocks are executed: from here it is told what to run, and ended."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from harness import processes
from harness.documented_run.documents import execute
from harness.documented_run.documents.workspace import Place

PATIENCE = 600.0
"""Seconds after which a block counts as hung, unless somebody says otherwise."""

GRACE = 10.0
"""Seconds in which a block that is interrupted can end; then its process is killed."""

ENDED = ("Died", "TimedOut")
"""The errors of a block that never came to an end of its own."""


class Process:
    """A process that runs one block after the other."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.died = False

    def run(self, code: str, name: str, decorators: Sequence[str] = (), *, timeout: float = PATIENCE) -> dict[str, Any]:
        """What the block did, with its seconds; a process that died or a block that hung is an error too.

        A block that takes longer than ``timeout`` is interrupted, as by Ctrl-C; what it has done until then stays.
        """
        began, done = time.perf_counter(), None
        watchdog = _Watchdog(self.process, timeout)
        with watchdog:
            done = self._asked({"code": code, "name": name, "decorators": list(decorators)})
        if done is None:
            self.died = True
            status = self.process.wait()
            done = {"warnings": [], "printed": "", "skipped": None}
            done["error"] = _error("Died", f"the process ended with status {status}")
        if watchdog.barked and done["error"] is not None:
            done["error"] = _error("TimedOut", f"no end after {timeout:g} s")
        return done | {"seconds": round(time.perf_counter() - began, 2)}

    def _asked(self, task: dict[str, Any]) -> dict[str, Any] | None:
        assert self.process.stdin
        assert self.process.stdout
        line = ""
        with suppress(OSError):  # it has just died
            if self.process.poll() is None:
                self.process.stdin.write(json.dumps(task) + "\n")
                self.process.stdin.flush()
                line = self.process.stdout.readline()
        return json.loads(line) if line else None


def _error(kind: str, says: str) -> dict[str, Any]:
    return {"type": kind, "says": says, "name": None, "module": None}


class _Watchdog:
    """Interrupts a process after a while, and kills it where that does not help."""

    def __init__(self, process: subprocess.Popen[str], patience: float) -> None:
        self.process, self.barked = process, False
        self.timers = [
            threading.Timer(patience, self._bark),
            threading.Timer(patience + GRACE, lambda: processes.end(process)),
        ]

    def _bark(self) -> None:
        self.barked = True
        with suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGINT)

    def __enter__(self) -> None:
        for timer in self.timers:
            timer.daemon = True
            timer.start()

    def __exit__(self, *_: object) -> None:
        for each in self.timers:
            each.cancel()


@contextmanager
def started(place: Place) -> Iterator[Process]:
    # -P: the folder of this package is not where a document's imports come from.
    command = [sys.executable, "-P", execute.__file__]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with processes.started(
        command, place.afterwards, cwd=place.folder, env=place.environment, text=True, **pipes
    ) as process:
        try:
            yield Process(process)
        finally:
            processes.end(process)
            with suppress(OSError):  # of what could not be written to one that died
                process.communicate()
