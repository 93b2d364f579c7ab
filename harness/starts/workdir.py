"""Starts of a script: in an isolated working directory, and again where it was killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TextIO

from harness.errors import CannotTry
from harness.processes import Afterwards, afterwards, end_group, started
from harness.starts.isolated import Directory, folders_of, logs_in, named
from harness.starts.journal import Journal
from harness.starts.orders import Orders

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
    hidden: tuple[str, ...] = ()
    """Patterns of files that are not there for it."""
    environment: tuple[tuple[str, str], ...] = ()
    """Variables that are set for it."""


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


class Workdir:
    """An isolated working directory in which a script is started, killed and started again."""

    def __init__(self, root: Path, number: int, command: Command, left_behind: Afterwards) -> None:
        """``root`` is where the directory is made.

        Raises:
            CannotTry: there is no room for it.
        """
        self._left_behind = left_behind
        self._home = root / f"{number}"
        folders = folders_of(command.script, module=command.module)
        self._directory = Directory.make(self._home, folders, logs_in(root) / f"{number}", [str(root)])
        self._directory.hide(command.hidden)
        self._directory.share()
        self.folder = Path(self._directory.mirror.of(os.path.realpath(os.getcwd())))
        self.command = command
        self._starts = 0

    def orders(self, arguments: Sequence[str] = (), **orders: Any) -> Orders:
        """What the next start is told; ``arguments`` are given besides the command's own."""
        self._starts += 1
        command = self.command
        return Orders(
            folder=str(self._home / f"start-{self._starts}"),
            script=self._inside(command.script),
            arguments=tuple(self._inside(each) for each in (*command.arguments, *arguments)),
            module=command.module,
            **orders,
        )

    def start(self, orders: Orders, timeout: float | None = None) -> Start:
        """Start the script, and wait for its end or its death, or for ``timeout`` seconds."""
        orders.write()
        begun = time.perf_counter()
        with (self._home / "stderr.txt").open("w+") as said:
            with self._started(orders, said) as process:
                timed_out = False
                try:
                    process.wait(timeout)
                except subprocess.TimeoutExpired:
                    timed_out = True
                finally:
                    if process.poll() != 0:
                        _end_ranks(orders)
            said.seek(0)
            text = self.real(said.read()[-20_000:])
        journals = [Journal.read(orders.journal(rank)) for rank in range(self.command.processes)]
        for each in journals:
            each.end, each.saves = named(each.end, self.real), named(each.saves, self.real)
        return Start(journals, time.perf_counter() - begun, text, timed_out)

    def uninterrupted(self, *, launched: str, idle: str, **orders: Any) -> Start:
        """Run the script to its end, and remove the copy.

        Args:
            launched: what to do with a script that a launcher is to start.
            idle: what follows where a script makes no update.
            orders: as those of :meth:`orders`.

        Raises:
            CannotTry: it crashes, or nothing is trained.
        """
        start = self.start(self.orders(**orders))
        self.remove()
        must_train(start, self.command, launched=launched, idle=idle)
        return start

    def remove(self) -> None:
        """Remove it, and put back what was changed outside of it.

        Raises:
            CannotTry: something could not be put back, or was changed in a way that nothing was heard of.
        """
        left, reached = self._directory.put_back(), self._directory.reached()
        self._directory.remove()
        if reached:
            raise CannotTry(
                f"{self.command.script} changed {', '.join(reached)} in a way that nothing was heard of, perhaps by a "
                "program that it started; it is not as it was before"
            )
        if left:
            raise CannotTry(f"{', '.join(left)} could not be put back as it was; harness doctor says what to do")

    def own(self, name: str) -> str:
        """A file below the working directory, to be written to."""
        return self._directory.mirror.own(os.path.join(self.folder, name))

    def real(self, text: str) -> str:
        """A text with the user's own paths."""
        return self._directory.mirror.real(text)

    def _started(self, orders: Orders, said: TextIO) -> AbstractContextManager[subprocess.Popen[bytes]]:
        return started(
            [*self._launcher(), self.command.python, "-P", "-m", "harness.starts.child", str(orders.file)],
            self._left_behind,
            cwd=self.folder,
            env={**os.environ, **self.environment()},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=said,
        )

    def _inside(self, word: str) -> str:
        """A word of the command line with the path of the mirror for that of the working directory."""
        given = self.command.folder
        word = self._directory.inside(word, self._directory.folders)
        return word if given in self._directory.folders else self._directory.inside(word, (given,))

    def _launcher(self) -> list[str]:
        if self.command.processes == 1:
            return []
        ranks = str(self.command.processes)
        return [
            *(self.command.python, "-P", "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", ranks),
            "--no-python",
        ]

    def environment(self) -> dict[str, str]:
        """What is set for the script besides."""
        from harness.compat import accelerates_variable

        variables = self._directory.environment() | {"PWD": str(self.folder)} | dict(self.command.environment)
        if self.command.processes == 1:
            return variables
        import torch

        if torch.cuda.is_available():
            return variables
        return variables | {accelerates_variable("ACCELERATE_USE_CPU"): "true", "OMP_NUM_THREADS": "1"}


def _end_ranks(orders: Orders) -> None:
    """Kill the processes of a start that did not end well, and what they started: their launcher is not their group."""
    for pid in orders.pids():
        end_group(pid)
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def must_train(start: Start, command: Command, *, launched: str, idle: str) -> None:
    """Whether a script ran to its end and trained something.

    Args:
        launched: what to do with a script that a launcher is to start.
        idle: what follows where a script makes no update.

    Raises:
        CannotTry: it crashed, could not be recorded, or nothing was trained.
    """
    script = command.script
    for journal in start.journals:
        if journal.end is None or journal.end.crashed is not None:
            said = start.said.strip() if journal.end is None else str(journal.end.crashed)
            if "environment variable RANK expected" in said and command.processes == 1:
                raise CannotTry(f"{script} is to be started by torchrun (RANK is not set): {launched}")
            raise CannotTry(f"{script} crashes:\n{said or 'it ended without a word'}")
        if journal.end.failed is not None:
            raise CannotTry(f"{script} could not be recorded: {journal.end.failed}")
        if not journal.updates and (read := next((each.path for each in journal.loads if each.path), None)):
            raise CannotTry(
                f"{script} made no update: it read {read}, which may be of a finished run; --fresh hides what the "
                "script saved, so that it starts from the beginning"
            )
        if not journal.updates:
            raise CannotTry(f"{script} made no optimizer step in this process, {idle}")


@dataclass(frozen=True)
class Scratch:
    """The folder of the directories, which goes with all that runs in them, also where this process is killed."""

    root: Path
    left_behind: Afterwards

    def workdir(self, number: int, command: Command) -> Workdir:
        return Workdir(self.root, number, command, self.left_behind)


@contextmanager
def scratch(prefix: str) -> Iterator[Scratch]:
    """A folder for isolated working directories."""
    with (
        TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True) as name,
        afterwards(Path(name), logs_in(Path(name))) as each,
    ):
        yield Scratch(Path(name), each)


def no_progress(line: str) -> None:
    """Takes a line for each start, and shows none."""
