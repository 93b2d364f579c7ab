"""Starts of a script: in an isolated working directory, and again where it was killed."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TextIO

from harness.errors import CannotTry
from harness.files import write_atomically
from harness.processes import Afterwards, afterwards, end_group, started
from harness.starts.directory import Directory
from harness.starts.isolated import folders_of, logs_in, make, named
from harness.starts.journal import Journal
from harness.starts.levels import chosen
from harness.starts.mirror import real_in
from harness.starts.moments import Moment, Store, build
from harness.starts.orders import Orders
from harness.starts.overlay import Overlay
from harness.starts.warm import Request, Warm

PATIENCE = 10.0
"""How many times the uninterrupted run's seconds a start is given."""

LEAST_PATIENCE = 120.0

STORES = {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
"""A store for each time that torchrun starts the ranks: else they may look for each other where the last ones were
(pytorch/pytorch#167288)."""

MOST_SAID, MOST_PRINTED = 20_000, 2_000_000
"""Characters that are kept of the end of what a start prints to stderr, and of the beginning of what it prints."""

ABOUT = "about.json"
"""What a kept start has beside its journals."""

SHARE_OF_MEMORY = 0.8
"""Share of the free memory that starts beside each other may take."""


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
    """Journal of each process."""
    seconds: float
    stderr: str
    """The end of what it printed to stderr."""
    timed_out: bool = False
    fingerprint: dict[str, Any] = field(default_factory=dict)
    """Fingerprint of the machine, where there are several."""
    restarted: list[Journal] = field(default_factory=list)
    """Journal of each process after its launcher has restarted all of them."""

    @classmethod
    def read(cls, folder: Path, processes: int, *, until: float | None = None) -> Start:
        """A start as :meth:`keep` has kept it; ``until`` is that of :meth:`Journal.read`."""
        about = json.loads((folder / ABOUT).read_text(encoding="utf-8"))
        at = about.pop("at")

        def journals(restarts: int) -> list[Journal]:
            files = [folder / Orders("", "").journal(rank, restarts).name for rank in range(processes)]
            return [_named(Journal.read(file, until=until), lambda text: real_in(text, at)) for file in files]

        restarted = journals(1) if about.pop("restarts") else []
        found, there = journals(0), frozenset(about.pop("there"))
        for each in found:
            each.there = there
        return cls(found, **about, restarted=restarted)

    def keep(self, folder: Path, orders: Orders, at: str) -> None:
        """Keep it in a folder that is there when it is complete; ``at`` is the root of the mirror that it ran in."""
        beside = folder.with_name(f".{folder.name}")
        shutil.rmtree(beside, ignore_errors=True)
        beside.mkdir(parents=True)
        for file in Path(orders.folder).glob("journal-*"):
            shutil.copyfile(file, beside / file.name)
        about = {"seconds": self.seconds, "stderr": self.stderr, "timed_out": self.timed_out}
        about["there"] = sorted(self.journals[0].there)
        write_atomically(beside / ABOUT, json.dumps({**about, "at": at, "restarts": orders.restarts}))
        os.rename(beside, folder)


class Workdir:
    """An isolated working directory in which a script is started, killed and started again."""

    def __init__(
        self, root: Path, number: int, command: Command, left_behind: Afterwards, own: Sequence[str] = ()
    ) -> None:
        """``root`` is where the directory is made; ``own`` are further folders that are the command's own.

        Raises:
            CannotTry: there is no room for it.
        """
        self._left_behind = left_behind
        self._home = root / f"{number}"
        folders = folders_of(command.script, module=command.module)
        self._directory = make(
            self._home,
            folders,
            logs_in(root) / f"{number}",
            chosen(),
            [str(root), *own],
            (command.script, *command.arguments),
        )
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
        there = self._directory.files(os.path.realpath(os.getcwd()))
        begun = time.perf_counter()
        with (self._home / "stderr.txt").open("w+") as stderr:
            with self._started(orders, stderr) as process:
                timed_out = False
                try:
                    process.wait(timeout)
                except subprocess.TimeoutExpired:
                    timed_out = True
                finally:
                    if process.poll() != 0:
                        _end_ranks(orders)
            stderr.seek(0)
            text = stderr.read()[-MOST_SAID:]
        return self._over(orders, there, time.perf_counter() - begun, text, timed_out=timed_out)

    def start_warm(self, warm: Warm, number: int, orders: Orders, timeout: float | None = None) -> tuple[Start, str]:
        """Start the script in a copy of a process that has imported its libraries; and what it printed.

        ``number`` tells it from other starts of that process.
        """
        orders.write()
        there = self._directory.files(os.path.realpath(os.getcwd()))
        begun, out = time.perf_counter(), self._home / f"said-{self._starts}"
        enters = str(self._directory.home) if isinstance(self._directory, Overlay) else None
        request = Request(number, str(orders.file), str(self.folder), str(out), self.environment(), enters)
        status = warm.start(request, timeout)
        seconds = time.perf_counter() - begun
        with open(out, encoding="utf-8", errors="replace") as file:
            printed = file.read(MOST_PRINTED)
        errors = Path(f"{out}.err").read_text(encoding="utf-8", errors="replace")[-MOST_SAID:]
        return self._over(orders, there, seconds, errors, timed_out=status is None), self.real(printed)

    def _over(self, orders: Orders, there: frozenset[str], seconds: float, text: str, *, timed_out: bool) -> Start:
        """A start that has ended."""
        ranks = range(self.command.processes)
        rounds = [
            [_named(Journal.read(orders.journal(rank, number)), self.real) for rank in ranks]
            for number in range(orders.restarts + 1)
        ]
        for each in rounds[0]:
            each.there = there
        return Start(rounds[0], seconds, self.real(text), timed_out, restarted=rounds[-1] if orders.restarts else [])

    def bring(self, moment: Moment, store: Store) -> None:
        """Have the directory, which was just made, lie as a kill at some moment left it."""
        if isinstance(self._directory, Directory):
            build(moment, store, self._directory.mirror)
            self._directory.share()
            return
        told = self._home / "moment.json"
        told.write_text(json.dumps({**asdict(moment), "operation": None, "folders": self._directory.folders}))
        words = [sys.executable, "-P", "-m", "harness.starts.moments", str(told), str(store.root)]
        built = subprocess.run(self._directory.starts(words), capture_output=True, text=True, check=False)  # noqa: S603
        if built.returncode:
            raise CannotTry(f"the folder could not be rebuilt as a kill leaves it: {built.stderr.strip()[-500:]}")

    @property
    def at(self) -> str:
        """The root of the mirror."""
        return self._directory.mirror.of("")

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
            CannotTry: something could not be put back, or was changed unseen.
        """
        left, reached = self._directory.put_back(), self._directory.reached()
        self._directory.remove()
        if reached:
            raise CannotTry(
                f"{self.command.script} changed {', '.join(reached)} without the harness noticing, perhaps through "
                "a program that it started; the change stays"
            )
        if left:
            raise CannotTry(f"{', '.join(left)} could not be restored; see harness doctor")

    def put(self, name: str, data: bytes) -> None:
        """Have a file below the working directory hold something else, before the first start."""
        self._directory.put(os.path.join(os.path.realpath(os.getcwd()), name), data)

    def real(self, text: str) -> str:
        """A text with the user's own paths."""
        return self._directory.mirror.real(text)

    def _started(self, orders: Orders, stderr: TextIO) -> AbstractContextManager[subprocess.Popen[bytes]]:
        child = [self.command.python, "-P", "-m", "harness.starts.child", str(orders.file)]
        return started(
            self._directory.starts([*self._launcher(orders), *child]),
            self._left_behind,
            cwd=self.folder,
            env={**os.environ, **self.environment()},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=stderr,
        )

    def _inside(self, word: str) -> str:
        """A word of the command line with the path of the mirror for that of the working directory."""
        given = self.command.folder
        word = self._directory.inside(word, self._directory.folders)
        return word if given in self._directory.folders else self._directory.inside(word, (given,))

    def _launcher(self, orders: Orders) -> list[str]:
        if self.command.processes == 1:
            return []
        ranks = str(self.command.processes)
        return [
            *(self.command.python, "-P", "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", ranks),
            *(f"--max-restarts={orders.restarts}", "--no-python"),
        ]

    def environment(self) -> dict[str, str]:
        """What is set for the script besides."""
        from harness.compat import accelerates_variable

        variables = self._directory.environment() | {"PWD": str(self.folder)} | dict(self.command.environment)
        if self.command.processes == 1:
            return variables
        import torch

        if torch.cuda.is_available():
            return variables | STORES
        return variables | {accelerates_variable("ACCELERATE_USE_CPU"): "true", "OMP_NUM_THREADS": "1"} | STORES


def _named(journal: Journal, real: Callable[[str], str]) -> Journal:
    """A journal with the user's own paths."""
    journal.end, journal.saves = named(journal.end, real), named(journal.saves, real)
    return journal


def files_below(folder: Path) -> Iterator[str]:
    """The files of a folder, relative to it, by each path that leads to them and stays in it."""
    root = os.path.realpath(folder)
    for below, folders, names in os.walk(folder, followlinks=True):
        above = os.path.realpath(below)
        for name in list(folders):
            there = os.path.realpath(os.path.join(below, name))
            if not there.startswith(root + os.sep) or f"{above}{os.sep}".startswith(there + os.sep):
                folders.remove(name)  # it leads out, or in a circle
        yield from (os.path.relpath(os.path.join(below, name), folder) for name in names)


def _end_ranks(orders: Orders) -> None:
    """Kill the processes of a start that did not end well, and what they started: their launcher is not their group."""
    for pid in orders.pids():
        end_group(pid)
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def at_once(most: int, processes: int = 1) -> int:
    """How many starts fit beside each other, once one has ended: by the cores, by the memory that it took, and one on a
    GPU; ``most`` at most."""
    import torch

    most = min(most, (os.cpu_count() or 1) // processes)
    if torch.cuda.is_available() or most < 2:
        return 1
    try:
        import resource

        took = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024 * processes
        free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ImportError, OSError, ValueError):
        return 1
    return max(1, min(most, int(SHARE_OF_MEMORY * free / took)))


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
            stderr = start.stderr.strip() if journal.end is None else str(journal.end.crashed)
            if "environment variable RANK expected" in stderr and command.processes == 1:
                raise CannotTry(f"{script} must be started by torchrun (RANK is not set): {launched}")
            raise CannotTry(f"{script} crashed:\n{stderr or 'it ended without a message'}")
        if journal.end.failed is not None:
            raise CannotTry(f"{script} could not be recorded: {journal.end.failed}")
        if not journal.updates and (read := next((each.path for each in journal.loads if each.path), None)):
            raise CannotTry(
                f"{script} made no update: it read {read}, which may come from a finished run; --fresh hides what "
                "the script saved, so that it starts from the beginning"
            )
        if not journal.updates:
            raise CannotTry(f"{script} made no optimizer step in this process, {idle}")


@dataclass(frozen=True)
class Scratch:
    """The folder of the directories, which goes with all that runs in them, also where this process is killed."""

    root: Path
    left_behind: Afterwards
    own: tuple[str, ...] = ()
    """Further folders that are the command's own."""

    def workdir(self, number: int, command: Command) -> Workdir:
        return Workdir(self.root, number, command, self.left_behind, self.own)


@contextmanager
def scratch(prefix: str, name: str | None = None, own: Sequence[str] = ()) -> Iterator[Scratch]:
    """A folder for isolated working directories; with ``name`` always the same, for what holds its path.

    ``own`` are further folders that the command's processes write to.

    Raises:
        CannotTry: a folder of that name is there already.
    """
    with ExitStack() as stack:
        if name is None:
            root = Path(stack.enter_context(TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True)))
        else:
            root = Path(tempfile.gettempdir(), f"{prefix}{name}")
            try:
                root.mkdir(mode=0o700)
            except FileExistsError as error:
                raise CannotTry(f"{root} already exists: wait for the other command to end, or remove it") from error
            stack.callback(shutil.rmtree, root, ignore_errors=True)
        yield Scratch(root, stack.enter_context(afterwards(root, logs_in(root))), tuple(own))


def no_progress(line: str) -> None:
    """Takes a line for each start, and shows none."""
