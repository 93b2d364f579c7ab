"""Forks of a process that has imported the libraries and computed nothing: each is a process of its own, and quicker.

A process that is to be forked calls :func:`warm` first, once, and computes nothing before or after: threads that
computing starts are not in the forks.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import signal
import socket
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from harness.processes import end_group

LIBRARIES = (
    *("torch", "torch._dynamo", "datasets", "evaluate", "accelerate", "sklearn.metrics", "transformers", "pydantic"),
    *("harness.cli", "harness.matrix", "harness.metrics", "harness.record", "harness.settings", "harness.stages"),
    *("harness.watch.instrument", "harness.watch.script", "harness.report.check"),
    *("harness.resume.run", "harness.starts.child", "harness.compare.run", "harness.compare.look"),
    *("harness.repairs.prove", "harness.repairs.trial"),
)

PLAIN = ("torch", "torch._dynamo", "harness.watch.instrument")
"""What scripts of plain PyTorch import."""

PATIENCE = 0.01
"""Seconds between two looks at whether forks have ended."""


def warm(libraries: Sequence[str] = LIBRARIES) -> None:
    """Import the libraries, and leave what is there out of every later collection of garbage, the forks' too."""
    for name in libraries:
        importlib.import_module(name)
    if "transformers" in libraries:
        _warm_transformers()
    if "harness.cli" in libraries:
        from harness import catalogue

        catalogue.checks(), catalogue.losses()
    gc.collect()
    gc.freeze()


def _warm_transformers() -> None:
    import transformers

    from harness.compat import no_progress_bars

    no_progress_bars()
    for name in ("AutoModelForSequenceClassification", "AutoTokenizer", "BertForSequenceClassification", "Trainer"):
        getattr(transformers, name)  # imports what is behind it
    with contextlib.suppress(ImportError):  # what from transformers 5 on every process makes for its first checkpoint
        from transformers.conversion_mapping import get_checkpoint_conversion_mapping

        get_checkpoint_conversion_mapping("bert")


class Fork:
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
        until = None if timeout is None else time.monotonic() + timeout
        while self.poll() is None:
            if until is not None and time.monotonic() > until:
                raise subprocess.TimeoutExpired("a fork", timeout or 0)
            time.sleep(PATIENCE)
        assert self.returncode is not None
        return self.returncode


def fork(work: Callable[[], Any], *, streams: Sequence[int] = (), limit: int = 0) -> Fork:
    """Do the work in a process of its own, which leads a group of its own.

    ``streams`` are the files, by their numbers, that take the place of standard output and standard error; nothing is
    to be read from standard input. After ``limit`` seconds, if that is not 0, a signal ends it. What the work gives, or
    ends with, is the exit status, as in ``sys.exit``.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid:
        return Fork(pid)
    status: object = 1
    try:
        os.setsid()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        for number, stream in enumerate(streams, start=1):
            os.dup2(stream, number)
        signal.alarm(limit)
        status = work()
    except SystemExit as end:
        status = end.code
        if isinstance(status, str):
            print(status, file=sys.stderr)
    except BaseException:  # noqa: BLE001 - the fork ends here, whatever it was
        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(0 if status is None else status if isinstance(status, int) else 1)


def as_ranks(work: Callable[[], Any], processes: int) -> int:
    """Do the work in as many forks as torchrun would start processes, with its variables: the status of the first
    that fails, which ends the others, or 0.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    common: dict[str, object] = {
        "WORLD_SIZE": processes,
        "LOCAL_WORLD_SIZE": processes,
        "GROUP_RANK": 0,
        "GROUP_WORLD_SIZE": 1,
    }
    common |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "TORCHELASTIC_RUN_ID": f"forked-{os.getpid()}"}
    common |= {"TORCHELASTIC_RESTART_COUNT": 0, "TORCHELASTIC_MAX_RESTARTS": 0, "TORCHELASTIC_USE_AGENT_STORE": "False"}

    def rank(number: int) -> Any:
        each = dict.fromkeys(("RANK", "LOCAL_RANK", "ROLE_RANK"), number)
        set_environment({name: str(value) for name, value in {**common, **each}.items()})
        return work()

    ranks = [fork(lambda number=number: rank(number)) for number in range(processes)]  # type: ignore[misc]
    try:
        while (status := _worst(ranks)) is None:
            time.sleep(PATIENCE)
    finally:
        for each in ranks:
            end_group(each.pid)
    return status


def _worst(ranks: Sequence[Fork]) -> int | None:
    """The status of a fork that failed; 0 where all have ended well; None as long as neither is so."""
    ended = [each.poll() for each in ranks]
    return next((status for status in ended if status), None if None in ended else 0)


def set_environment(variables: Mapping[str, str]) -> None:
    os.environ.update(variables)
