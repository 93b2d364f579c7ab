"""Forks of a process that has imported the libraries and computed nothing: each is a process of its own, and quicker.

A process that is to be forked calls :func:`warm` first, once, and computes nothing before or after: threads that
computing starts are not in the forks.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import logging
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
import warnings
from ast import literal_eval
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from harness.processes import end_group

LIBRARIES = (
    *("torch", "torch._dynamo", "datasets", "evaluate", "accelerate", "sklearn.metrics", "transformers", "pydantic"),
    *(
        "harness.cli",
        "harness.documented_run.matrix",
        "harness.documented_run.metrics",
        "harness.documented_run.record",
        "harness.settings",
        "harness.documented_run.stages",
    ),
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
    status = 1
    try:
        os.setsid()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        for number, stream in enumerate(streams, start=1):
            os.dup2(stream, number)
        signal.alarm(limit)
        status = status_of(work)
    finally:
        os._exit(status)


def status_of(work: Callable[[], Any]) -> int:
    """Do the work: the exit status that a process which did it would end with."""
    status: object = 1
    try:
        status = work()
    except SystemExit as end:
        status = end.code
        if isinstance(status, str):
            print(status, file=sys.stderr)
    except BaseException:  # noqa: BLE001 - the process ends here, whatever it was
        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
    return 0 if status is None else status if isinstance(status, int) else 1


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


@contextlib.contextmanager
def as_it_was() -> Iterator[None]:
    """Put back what a script changes of its process, so that the next one finds what the first of a fork does.

    These are the environment, the folder, what is searched for modules and was imported from beside the script, the
    streams, signals, warnings and logging; the random states; what torch computes with by default, and Accelerate's
    state. Threads and audit hooks stay.
    """
    import numpy as np
    import torch

    names, environment, folder = set(sys.modules), dict(os.environ), os.getcwd()
    lists = [(sys, name, list(getattr(sys, name))) for name in ("argv", "path", "meta_path", "path_hooks")]
    plain = [(sys, name, getattr(sys, name)) for name in ("stdin", "stdout", "stderr", "excepthook", "displayhook")]
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)}
    root, limit = logging.getLogger(), sys.getrecursionlimit()
    logs, level = list(root.handlers), root.level
    python, numpy, drawn = random.getstate(), np.random.get_state(), torch.get_rng_state()
    dtype, device, threads = torch.get_default_dtype(), torch.get_default_device(), torch.get_num_threads()
    with warnings.catch_warnings():
        try:
            yield
        finally:
            os.environ.clear()
            os.environ.update(environment)
            os.chdir(folder)
            for owner, name, value in lists:
                getattr(owner, name)[:] = value
            for owner, name, value in plain:
                setattr(owner, name, value)
            for number, handler in handlers.items():
                signal.signal(number, handler)
            root.handlers[:], root.level = logs, level
            sys.setrecursionlimit(limit)
            random.setstate(python)
            np.random.set_state(numpy)
            torch.set_rng_state(drawn)
            torch.set_default_dtype(dtype)
            torch.set_default_device(None if device.type == "cpu" else device)
            torch.set_num_threads(threads)
            torch.set_grad_enabled(True)
            torch.use_deterministic_algorithms(False)
            torch.autograd.set_detect_anomaly(False)
            if torch.distributed.is_available() and torch.distributed.is_initialized():
                torch.distributed.destroy_process_group()
            _forget_accelerate()
            for name in set(sys.modules) - names:
                file = getattr(sys.modules[name], "__file__", None)  # what Python has built in is from no file
                if file and not file.startswith((sys.prefix, sys.base_prefix, *LASTING)):
                    del sys.modules[name]
            gc.collect()


LASTING = (os.path.dirname(os.path.dirname(os.path.abspath(__file__))),)
"""Beside Python's own folders, those whose modules stay: they are no script's."""


def _forget_accelerate() -> None:
    if state := sys.modules.get("accelerate.state"):
        for name in ("AcceleratorState", "PartialState", "GradientState"):  # how each is reset differs by version
            if kind := getattr(state, name, None):
                kind._shared_state.clear()


class Sequel:
    """A fork that does jobs one after another, each in the state in which the first finds the process.

    A script takes three quarters of the time there: what the first one touches is copied already, and compiled.
    """

    def __init__(self, work: Callable[[Any], Any]) -> None:
        self._here, there = socket.socketpair()
        self._lines = self._here.makefile("r")
        with there:
            self._fork = fork(lambda: _in_turn(work, there))

    def do(self, job: object, limit: int) -> tuple[int, bool]:
        """The exit status of one more job, which ``limit`` seconds end; and whether another one may follow."""
        self._here.sendall(repr((job, limit)).encode() + b"\n")
        if answer := self._lines.readline():
            status, further = answer.split()
            return int(status), further == "True"
        return self._fork.wait(), False

    def end(self) -> None:
        self._lines.close()
        self._here.close()
        end_group(self._fork.pid)
        self._fork.wait()


def _in_turn(work: Callable[[Any], Any], asked: socket.socket) -> None:
    """In the fork: do what is asked until nothing more is."""
    for line in asked.makefile("r"):
        job, limit = literal_eval(line)
        before = threading.active_count()
        with as_it_was():
            signal.alarm(limit)
            status = status_of(lambda job=job: work(job))  # type: ignore[misc]
            signal.alarm(0)
        further = threading.active_count() <= before
        asked.sendall(f"{status} {further}\n".encode())
        if not further:
            return
