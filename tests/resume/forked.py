"""Starts of scripts that are forked from a process in which the libraries have been imported: seconds less for each.

What is imported has not computed anything, so that a fork of it is as a process of its own.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import traceback
from typing import Any, TextIO

from harness.resume import child
from harness.resume.orders import Orders
from harness.resume.starts import Machine


def preload() -> None:
    import accelerate  # noqa: F401
    import datasets  # noqa: F401
    import torch._dynamo  # noqa: F401, imported by the first optimizer that is made
    from transformers import BertForSequenceClassification, Trainer  # noqa: F401

    import harness.watch.instrument  # noqa: F401


class Forked:
    """A process that was forked, with what is used of subprocess.Popen."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        until = time.monotonic() + (1e9 if timeout is None else timeout)
        while self.poll() is None:
            if time.monotonic() > until:
                raise subprocess.TimeoutExpired("a forked script", timeout or 0)
            time.sleep(0.01)
        assert self.returncode is not None
        return self.returncode


def spawn(machine: Any, orders: Orders, said: TextIO) -> Any:
    """In the place of ``Machine._spawn``, for one process."""
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid:
        return Forked(pid)
    status = 1
    try:
        os.setsid()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.dup2(os.open(os.devnull, os.O_RDWR), 0)
        os.dup2(0, 1)
        os.dup2(said.fileno(), 2)
        os.chdir(machine.folder)
        os.environ["TMPDIR"] = str(machine.folder.parent / "tmp")
        status = child.main(str(orders.file))
    except SystemExit as ended:
        status = int(ended.code or 0)
    except BaseException:  # noqa: BLE001 - nothing may go up into the process that was forked
        traceback.print_exc()
    finally:
        os._exit(status)


def install() -> None:
    """From now on starts in one process are forked."""
    original = Machine._spawn

    def either(machine: Any, orders: Orders, said: TextIO) -> Any:
        return (spawn if machine._command.processes == 1 else original)(machine, orders, said)

    Machine._spawn = either  # type: ignore[method-assign]
