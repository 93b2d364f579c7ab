"""Starts of a script: in a fresh copy of its working directory, and again where it was killed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, TextIO

from harness.afterwards import Afterwards
from harness.files import LEFT_OUT
from harness.resume.journal import Journal
from harness.resume.orders import Keep, Orders, Place

PATIENCE = 10.0
"""How many times the uninterrupted run's seconds a start is given."""

LEAST_PATIENCE = 120.0


@dataclass(frozen=True)
class Command:
    """How the script is started."""

    script: str
    arguments: tuple[str, ...] = ()
    module: bool = False
    processes: int = 1
    python: str = sys.executable
    """The interpreter."""
    folder: str = field(default_factory=os.getcwd)
    """The working directory, as words of the command line have it."""


@dataclass(frozen=True)
class Start:
    journals: list[Journal]
    """Of each process."""
    seconds: float
    said: str
    """The end of what it printed to stderr."""
    timed_out: bool = False
    fingerprint: dict[str, Any] = field(default_factory=dict)
    """Of the machine, where there are several."""


class Machine:
    """A copy of the working directory in which a script is started, killed and started again."""

    program: ClassVar[str] = "harness.resume.child"
    launched: ClassVar[str] = "start it in several processes, with --processes"
    """What to do with a script that a launcher is to start."""
    idle: ClassVar[str] = (
        "so there is nothing to go on with; if a finished checkpoint lies in the working directory, move it away"
    )
    """What follows if a script makes no update."""

    def __init__(
        self, root: Path, number: int, command: Command, left_behind: Afterwards, of: Path | None = None
    ) -> None:
        """``of`` is the folder that is copied, where that is not the working directory but a copy of it."""
        self._left_behind = left_behind
        self._home = root / f"{number}"
        self.folder = self._home / "copy" / Path.cwd().name  # which may be called as what lies beside it
        self.command = command
        self._starts = 0
        self._home.mkdir(parents=True)
        (self._home / "tmp").mkdir()

        def left_out(path: str, names: list[str]) -> set[str]:
            ours = {root.name} if Path(path).resolve() == root.parent.resolve() else set()
            return LEFT_OUT(path, names) | ours

        shutil.copytree(of or Path.cwd(), self.folder, symlinks=True, ignore=left_out)

    def start(
        self,
        arguments: Sequence[str] = (),
        *,
        place: Place | None = None,
        most_updates: int | None = None,
        timeout: float | None = None,
        keep: Keep | None = None,
    ) -> Start:
        """Start the script, with ``arguments`` besides its own, and wait for its end or its death."""
        orders = self._orders(arguments)
        return self._follow(replace(orders, place=place or Place(), most_updates=most_updates, keep=keep), timeout)

    def _orders(self, arguments: Sequence[str] = ()) -> Orders:
        self._starts += 1
        command = self.command
        return Orders(
            folder=str(self._home / f"start-{self._starts}"),
            script=self._inside(command.script),
            arguments=tuple(self._inside(each) for each in (*command.arguments, *arguments)),
            module=command.module,
        )

    def _follow(self, orders: Orders, timeout: float | None) -> Start:
        orders.write()
        begun = time.perf_counter()
        with (self._home / "stderr.txt").open("w+") as said:
            process = self._spawn(orders, said)
            self._left_behind.begun(process.pid)
            try:
                process.wait(timeout)
                timed_out = False
            except subprocess.TimeoutExpired:
                timed_out = True
            finally:
                _end(process, orders)
                self._left_behind.ended(process.pid)
            said.seek(0)
            text = said.read()[-20_000:]
        journals = [Journal.read(orders.journal(rank)) for rank in range(self.command.processes)]
        return Start(journals, time.perf_counter() - begun, text, timed_out)

    def _spawn(self, orders: Orders, said: TextIO) -> subprocess.Popen[bytes]:
        return subprocess.Popen(  # noqa: S603 - the user's own script
            [*self._launcher(), self.command.python, "-P", "-m", self.program, str(orders.file)],
            cwd=self.folder,
            env={**os.environ, "TMPDIR": str(self._home / "tmp"), **self._environment()},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=said,
            start_new_session=True,
        )

    def remove(self) -> None:
        shutil.rmtree(self._home, ignore_errors=True)

    def _inside(self, word: str) -> str:
        """A word of the command line with the path of the copy for that of the working directory."""
        return word.replace(self.command.folder, str(self.folder))

    def _launcher(self) -> list[str]:
        if self.command.processes == 1:
            return []
        ranks = str(self.command.processes)
        return [
            *(self.command.python, "-P", "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", ranks),
            "--no-python",
        ]

    def _environment(self) -> dict[str, str]:
        from harness.compat import accelerates_variable

        if self.command.processes == 1:
            return {}
        import torch

        return {} if torch.cuda.is_available() else {accelerates_variable("USE_CPU"): "true", "OMP_NUM_THREADS": "1"}


def _end(process: subprocess.Popen[bytes], orders: Orders) -> None:
    """End what is left of a start: its launcher, its processes, and what they started."""
    leaders = [process.pid] if process.poll() == 0 else [process.pid, *orders.pids()]
    for leader in leaders:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(leader, signal.SIGKILL)
        if process.returncode != 0:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(leader, signal.SIGKILL)
    process.wait()
