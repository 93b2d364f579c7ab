"""``harness resume --every-event``: one save gone through file operation by file operation.

The script runs twice: once to see which files it touches when, and once more while the folder is kept as it lies before
each operation of one save. From then on nothing that comes before the save runs again: the folder is built as a kill
leaves it, and the script is started there. What is kept lies in the user's folder of caches until all moments are
tried, so that the same command goes on after an interruption.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from itertools import count, pairwise
from pathlib import Path
from typing import Any

from harness.digests import joined
from harness.errors import CannotTry
from harness.fingerprint import library_versions
from harness.put_back import cache_folder
from harness.resume.plan import Kill, Kind
from harness.starts.isolated import folders_of
from harness.starts.journal import Journal, Operation
from harness.starts.mirror import ENTRIES, NOT_DATA
from harness.starts.moments import Moment, Store, within
from harness.starts.orders import KillPoint, Watched
from harness.starts.workdir import ABOUT, Command, Scratch, Start, at_once, must_train, scratch

KEPT_DAYS = 7
"""Days after which what an interrupted command has kept is removed by the next one."""

OTHER_SAVES = 4
"""Saves behind which the script is killed too, besides the one that is gone through."""

AT_ONCE = 8
"""Starts at a time, where there are cores and memory for them."""

OF_THE_TERMINAL = ("_", "COLUMNS", "LINES", "OLDPWD", "SHLVL")
"""Variables that differ from one call to the next, and matter to no script."""

RECORDED = 1
"""The number of the directory in which the save was recorded: a path that a checkpoint holds leads there."""

LAUNCHED = "start it in several processes, with --processes"
"""What to do with a script that a launcher is to start."""

IDLE = "so there is nothing to resume; if the checkpoint of a finished run is in the working directory, move it away"
"""What follows where a script makes no update."""


def saves_to_try(whole: Journal) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """After how many updates those file operations are made that are gone through, and behind which other saves the
    script is killed too.

    Gone through are what is written before the first update, and one save: of those with a checkpoint before them the
    one with the most kinds of operations, as where an old checkpoint is removed, and of these the latest.
    """
    made = dict[int, list[Operation]]()
    for operation in whole.operations:
        made.setdefault(operation.at, []).append(operation)
    ats = sorted({saved.at for saved in whole.checkpoints() if saved.at})
    candidates = [at for at in ats[1:] or ats if at in made]
    if not candidates:
        return (), ()
    chosen = max(candidates, key=lambda at: (len({each.kind for each in made[at]}), at))
    others = [at for at in ats if at != chosen]
    return (0, chosen) if 0 in made else (chosen,), tuple(others[:: -(-len(others) // OTHER_SAVES) or 1])


def moments_of(taken: Sequence[Moment], at: int, store: Store) -> list[Moment]:
    """A save's moments: before each of its operations, within those that write, and after the last."""
    own, found = [each for each in taken if each.at == at], list[Moment]()
    for one, other in pairwise(own):
        found += [one, *within(one, other, store)]
    return [*found, *own[-1:]]


def different(kills: Sequence[Kill]) -> list[Kill]:
    """The kills after which the folder lies in another way each."""
    first = dict[str, Kill]()
    for kill in kills:
        if kill.moment is not None:
            first.setdefault(kill.moment.holds, kill)
    return list(first.values())


def kills_of(moments: Sequence[Moment]) -> list[Kill]:
    """A kill at each moment of a save. Before the first operation and after the last it is one between two updates."""
    ends = (0, len(moments) - 1) if moments[0].at else (len(moments) - 1,)
    kinds: list[Kind] = ["after an update" if number in ends else "during a save" for number in range(len(moments))]
    return [Kill(kind, KillPoint(), each.at, moment=each) for kind, each in zip(kinds, moments, strict=True)]


class Kept:
    """What a command has found so far, on the disk."""

    def __init__(self, command: Command, resume_arguments: Sequence[str]) -> None:
        """Raises:
        CannotTry: nothing can be written to the folder of caches.
        """
        self.name = _name(command, resume_arguments)
        self.root = cache_folder() / "resume" / self.name
        self._processes = command.processes
        _remove_old(self.root.parent)
        try:
            self.root.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise CannotTry(
                f"--every-event keeps what it finds in {self.root.parent}, which cannot be written ({error.strerror}); "
                "set XDG_CACHE_HOME to another folder"
            ) from error

    @contextmanager
    def alone(self) -> Iterator[None]:
        """No other command of the same works with it.

        Raises:
            CannotTry: one does.
        """
        with (self.root / "lock").open("a") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise CannotTry("the same harness resume --every-event is running; wait until it ends") from error
            yield

    def has(self, name: str) -> bool:
        return (self.root / name / ABOUT).exists()

    def read(self, name: str) -> Start:
        return Start.read(self.root / name, self._processes)

    def remove(self) -> None:
        shutil.rmtree(self.root, ignore_errors=True)


class EventStarts:
    """The starts of a script whose save is gone through, of which none is made twice."""

    def __init__(self, command: Command, resume_arguments: Sequence[str], kept: Kept, given: Scratch) -> None:
        self._command, self._arguments, self._kept, self._given = command, resume_arguments, kept, given
        self._numbers = count(RECORDED + 1)
        self._lock = threading.Lock()

    def whole(self) -> Start:
        """Uninterrupted, with all file operations written down."""
        return self._made("whole", 0, {})

    def again(self, at: tuple[int, ...], ends: tuple[int, ...]) -> Start:
        """Uninterrupted again, while the folder is kept as it lies at each operation after so many updates, and at the
        ends of other saves."""
        if not self._kept.has("again"):
            shutil.rmtree(self.store.root, ignore_errors=True)
        return self._made("again", RECORDED, {"watched": Watched(str(self.store.root), at, ends)})

    @property
    def store(self) -> Store:
        return Store(self._kept.root / "store")

    def killed_at(self, kill: Kill) -> list[Journal]:
        """What the ranks had written down when they were killed at a moment: of that save nothing is complete yet."""
        assert kill.moment is not None
        folder = self._kept.root / "again"
        journals = Start.read(folder, self._command.processes, until=kill.moment.until).journals
        for journal in journals:
            journal.killed, journal.end = True, None
            journal.updates = [update for update in journal.updates if update.at <= kill.at]
            journal.saves = [saved for saved in journal.saves if saved.at <= kill.at]
            if kill.moment.operation is not None:
                journal.saves = [replace(saved, done=saved.done and saved.at != kill.at) for saved in journal.saves]
        return journals

    def after(
        self, kills: Sequence[Kill], patience: float, most: int, tell: Callable[[str], None]
    ) -> Iterator[tuple[Start, float]]:
        """The script started where each of the kills left it, and about how many seconds are left."""
        store, moments = self.store, [kill.moment for kill in kills if kill.moment is not None]
        bound = store.holds(str(self._given.root))
        abreast = 1 if bound else at_once(AT_ONCE, self._command.processes)
        left = {each.holds for each in moments if not self._kept.has(each.holds)}
        if len(left) < len(moments):
            tell(f"{len(moments) - len(left)} were tried before; their outcomes are kept")
        if bound:
            tell("the checkpoint holds the path of its folder, so it is started in that folder alone, one at a time")

        def start(moment: Moment) -> Start:
            if self._kept.has(moment.holds):
                return self._kept.read(moment.holds)
            return self._restarted(moment, RECORDED if bound else self._number(), store, patience, most)

        begun, made = time.monotonic(), 0
        pool = ThreadPoolExecutor(abreast)
        try:
            for moment, found in zip(moments, pool.map(start, moments), strict=True):
                made += moment.holds in left
                yield found, (time.monotonic() - begun) / max(1, made) * (len(left) - made)
        except KeyboardInterrupt:
            tell("what was tried so far is kept: the same command continues from there")
            raise
        finally:
            pool.shutdown(wait=False, cancel_futures=True)  # starts that go on are ended with the scratch folder

    def _number(self) -> int:
        with self._lock:
            return next(self._numbers)

    def _restarted(self, moment: Moment, number: int, store: Store, patience: float, most: int) -> Start:
        workdir = self._given.workdir(number, self._command)
        try:
            workdir.bring(moment, store)
            # Before the first update there is nothing to go on from, and nobody asks for it.
            arguments = self._arguments if moment.at else ()
            orders = workdir.orders(arguments, most_updates=most, tells_held_out=True)
            start = workdir.start(orders, patience)
            start.keep(self._kept.root / moment.holds, orders, workdir.at)
        finally:
            workdir.remove()
        return start

    def _made(self, name: str, number: int, more: dict[str, Any]) -> Start:
        if self._kept.has(name):
            return self._kept.read(name)
        workdir = self._given.workdir(number, self._command)
        try:
            orders = workdir.orders(operations=True, tells_held_out=True, **more)
            start = workdir.start(orders)
            must_train(start, self._command, launched=LAUNCHED, idle=IDLE)
            start.keep(self._kept.root / name, orders, workdir.at)
        finally:
            workdir.remove()
        return start


@contextmanager
def event_starts(command: Command, resume_arguments: Sequence[str]) -> Iterator[EventStarts]:
    """The starts of a script at every event; what is kept goes when all are through.

    Raises:
        CannotTry: the same command is under way.
    """
    kept = Kept(command, resume_arguments)
    with kept.alone(), scratch("harness-resume-", kept.name, [str(kept.root)]) as given:
        yield EventStarts(command, resume_arguments, kept, given)
        kept.remove()


def _name(command: Command, resume_arguments: Sequence[str]) -> str:
    """What tells a command from another, with the environment, the libraries' versions and the files of its folders."""
    printed = {(found.st_dev, found.st_ino) for found in map(os.fstat, (1, 2))}
    files = []
    for folder in folders_of(command.script, module=command.module):
        for below, folders, names in os.walk(folder):
            folders[:] = sorted(each for each in folders if each != "__pycache__" and each not in NOT_DATA)
            for name in sorted(names):
                with suppress(OSError):
                    found = os.stat(path := os.path.join(below, name))
                    if (found.st_dev, found.st_ino) not in printed:
                        files.append(f"{path} {found.st_size} {found.st_mtime_ns}")
            if len(files) > ENTRIES:
                break
    environment = sorted((name, value) for name, value in os.environ.items() if name not in OF_THE_TERMINAL)
    return joined([asdict(command), list(resume_arguments), library_versions(), environment, *files])


def _remove_old(folder: Path) -> None:
    """Remove what interrupted commands have kept for long."""
    with suppress(OSError):
        for kept in folder.iterdir():
            if time.time() - kept.stat().st_mtime > KEPT_DAYS * 24 * 3600:
                shutil.rmtree(kept, ignore_errors=True)
