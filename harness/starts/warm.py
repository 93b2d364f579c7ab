"""Warm starts: a script is started in a copy of a process that has imported the libraries it imports.

The template imports no file of the user's and starts nothing on a GPU. Each start is a fork of it, which goes into its
own view of the file system; so it begins within a tenth of a second, and not after the seconds that imports take.
"""

from __future__ import annotations

import importlib
import json
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from harness.errors import CannotTry
from harness.processes import Afterwards, started

PAUSE = 0.02
"""Seconds after which the template looks again whether a copy has ended."""

NOT_BEFORE = ("torch.cuda", "torch.utils.tensorboard", "tensorflow", "jax", "ray")
"""Modules that are left to the script: they touch a GPU, or start threads."""

GONE = "the process from which scripts are started has ended"


@dataclass(frozen=True)
class Request:
    """One start."""

    number: int
    orders: str
    """The file with its orders (:class:`harness.starts.orders.Orders`)."""
    folder: str
    """Its working directory."""
    output: str
    """The file for its output; what it prints to stderr goes to ``said`` with the suffix ``.err``."""
    environment: dict[str, str] = field(default_factory=dict)
    enters: str | None = None
    """The folder of the view that it goes into; None where there is none."""


class Warm:
    """The template, as the process that wants copies of it sees it."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._ended: dict[int, tuple[threading.Event, list[int]]] = {}
        self._lock = threading.Lock()
        self._over = False
        """Whether the template has ended: nobody answers any more."""
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            number, status = map(int, line.split())
            ended, statuses = self._ended[number]
            statuses.append(status)
            ended.set()
        with self._lock:
            self._over = True
            for ended, _ in self._ended.values():
                ended.set()

    def start(self, request: Request, timeout: float | None = None) -> int | None:
        """Start a copy and wait for its end; its exit status, negative for a signal. None where it took too long.

        Raises:
            CannotTry: the template has ended.
        """
        with self._lock:
            if self._over:
                raise CannotTry(GONE)
            ended, statuses = self._ended[request.number] = threading.Event(), []
        self._tell(json.dumps(asdict(request)))
        in_time = ended.wait(timeout)
        if not in_time:
            self._tell(json.dumps({"kill": request.number}))
            ended.wait()
        if not statuses:
            raise CannotTry(GONE)
        return statuses[0] if in_time else None

    def _tell(self, line: str) -> None:
        with self._lock, suppress(BrokenPipeError, ValueError):
            assert self._process.stdin is not None
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()


@contextmanager
def warm(
    python: str, modules: Sequence[str], environment: Mapping[str, str], left_behind: Afterwards | None
) -> Iterator[Warm]:
    """A template that has imported some modules, as far as they can be imported; it ends with the block."""
    words = [python, "-P", "-m", __name__]
    given: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with started(words, left_behind, env={**os.environ, **environment}, text=True, **given) as process:
        assert process.stdin is not None
        process.stdin.write(json.dumps(list(modules)) + "\n")
        process.stdin.flush()
        yield Warm(process)


def is_library(name: str) -> bool:
    """Whether a module may be imported before the script is started."""
    return not any(name == each or name.startswith(f"{each}.") for each in NOT_BEFORE)


def main() -> None:
    """Import, and start copies as they are asked for, until nobody asks any more."""
    tells = os.fdopen(os.dup(1), "w", encoding="utf-8")  # what a library prints when it is imported is no answer
    os.dup2(2, 1)
    running: dict[int, int] = {}
    """Process id to the number of the start."""
    imported, buffer = False, b""
    while True:
        ready, _, _ = select.select([0], [], [], PAUSE if running else None)
        if ready:
            read = os.read(0, 1 << 16)
            if not read:
                break
            *lines, buffer = (buffer + read).split(b"\n")
            for line in map(json.loads, lines):
                if imported:
                    _asked(line, running)
                else:
                    _import(line)
                    imported = True
        while running:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                break
            if (number := running.pop(pid, None)) is not None:
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(pid, signal.SIGKILL)  # what it has left running
                print(number, os.waitstatus_to_exitcode(status), file=tells, flush=True)
    for pid in running:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)


def _import(modules: Sequence[str]) -> None:
    for name in modules:
        with suppress(BaseException):
            importlib.import_module(name)
    importlib.import_module("harness.starts.child")


def _asked(asked: dict[str, Any], running: dict[int, int]) -> None:
    if "kill" in asked:
        for pid in [pid for pid, number in running.items() if number == asked["kill"]]:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, signal.SIGKILL)
        return
    request = Request(**asked)
    pid = os.fork()
    if pid == 0:
        _copy(request)
    running[pid] = request.number


def _copy(request: Request) -> NoReturn:
    """Run the script in this copy, as :mod:`harness.starts.child` does in a process of its own."""
    status = 1
    try:
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDONLY)
        out = os.open(request.output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        errors = os.open(f"{request.output}.err", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        for number, file in enumerate((nothing, out, errors)):
            os.dup2(file, number)
            os.close(file)
        os.environ.update(request.environment)
        if request.enters is not None:
            from harness.starts import view

            view.enter(Path(request.enters))
        os.chdir(request.folder)
        from harness.starts import child

        sys.argv = [child.__file__, request.orders]
        status = child.main(request.orders)
    except BaseException:  # noqa: BLE001 - whatever it is, the copy must not go on as the template
        import traceback

        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            with suppress(Exception):
                stream.flush()
        os._exit(status)


if __name__ == "__main__":
    main()
