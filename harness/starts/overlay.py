"""Directories that the kernel keeps apart: a script sees its own paths, and what it writes lies elsewhere.

:mod:`harness.starts.view` makes the view; here are the command's side of it and what it leaves out: the folders of
caches, which are the user's own, and those of this command.
"""

from __future__ import annotations

import functools
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from harness.errors import CannotTry
from harness.put_back import cache_folder, copy_file, left_behind, log_name, remove
from harness.starts import planned, upper, view
from harness.starts.caches import cache_folders, lasting_caches
from harness.starts.levels import Level
from harness.starts.mirror import Stamp

TEMPORARY = ("/tmp", "/var/tmp")  # noqa: S108 - only their names are used

VIEWS = "views"
"""Name of the folder, in a place that keeps what is written, with one for each view."""

PATIENCE = 10.0
"""Seconds that the ranks of somebody else's launcher have to end after the first."""


@dataclass
class Same:
    """Paths of a directory in which everything has the path that the user has, as a mirror is asked for them."""

    folders: tuple[str, ...]
    left_out: frozenset[str] = frozenset()
    """Folders in which a write reaches the user's own: what lies there is not the script's state."""
    copied: dict[str, Stamp] = field(default_factory=dict)

    def of(self, path: str) -> str:
        return path

    def real(self, text: str) -> str:
        return text

    def holds(self, path: str) -> bool:
        """Whether an absolute path without links lies in one of the folders."""
        return any(view.is_below(path, folder) for folder in self.folders)

    def own(self, path: str, *, follow: bool = True, empty: bool = False) -> str:
        return os.path.join(os.getcwd(), path)

    @property
    def roots(self) -> tuple[str, ...]:
        """The folders that :mod:`harness.starts.moments` looks at."""
        return self.folders

    def stamps(self) -> Iterator[tuple[str, Stamp]]:
        yield from ()


@dataclass
class Overlay:
    """A view of the file system, made ready on the disk; each process enters it by itself, or is started in it."""

    home: Path
    """Folder of this command's own, which is the same one inside and outside."""
    folders: tuple[str, ...]
    plan: view.Plan
    launched: bool = False
    """Whether somebody else's launcher started the ranks, which end by themselves."""
    known: dict[str, tuple[int, int]] = field(default_factory=dict)
    """What had been written when this process joined."""
    level: ClassVar[Level] = "overlay"

    @classmethod
    def make(
        cls, home: Path, folders: Sequence[str], through: Sequence[str] = (), words: Sequence[str] = ()
    ) -> Overlay:
        """Make one with these folders, given by their absolute paths without links; ``through`` are the command's own.

        Raises:
            Refused: there is no place for what is written.
            CannotTry: there is no room.
        """
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        forget()
        made = tuple(_make_caches())
        name = log_name(f"{home.parent.name}-{home.name}")
        own = [str(home), *through]
        home_folder, temporary = os.path.expanduser("~"), tempfile.gettempdir()
        wanted = [*folders, home_folder, temporary, *TEMPORARY, *_named((*os.environ.values(), *words))]
        try:
            plan = planned.plan(name, places(), [*own, *cache_folders()], wanted, folders)
            plan.made = [*made]
            plan.write(home)
        except view.Refused:
            view.remove_empty(made)
            raise
        except OSError as error:
            view.remove_empty(made)
            raise CannotTry(
                f"no private view of the file system could be made ({error.strerror}: {error.filename}); free some "
                "space, or run the script in place with --in-place"
            ) from error
        return cls(home, tuple(folders), plan)

    @classmethod
    def join(cls, home: Path) -> Overlay:
        """The one that another process has made."""
        plan = view.Plan.read(home)
        found = cls(home, tuple((home / "folders").read_text().split("\0")), plan)
        found.known = {change.path: _stamp(change.upper) for change in upper.changes(plan)}
        return found

    @staticmethod
    def is_at(home: Path) -> bool:
        return (home / view.PLAN).exists()

    @property
    def mirror(self) -> Same:
        return Same(self.folders, frozenset((*self.plan.through, os.path.realpath(cache_folder()))))

    def share(self) -> None:
        """Let other processes join."""
        (self.home / "folders").write_text("\0".join(self.folders))
        self.plan.write(self.home)

    def inside(self, word: str, folders: Sequence[str]) -> str:
        return word

    def environment(self) -> dict[str, str]:
        from harness.starts.isolated import VARIABLE

        return {VARIABLE: str(self.home)}

    def starts(self, words: Sequence[str]) -> list[str]:
        """The command line that starts a command in it."""
        return [sys.executable, "-I", "-S", view.__file__, str(self.home), "--", *words]

    def enter(self) -> None:
        """Go into it: this process, with one thread, and all that it starts.

        Raises:
            Refused: the kernel does not allow it.
        """
        view.enter(self.home)

    @contextmanager
    def entered(self) -> Iterator[None]:
        """What this process starts joins; the process itself stays outside."""
        from harness.starts.isolated import set_variables

        before = {name: os.environ.get(name) for name in self.environment()}
        set_variables(self.environment())
        try:
            yield
        finally:
            set_variables(before)

    def hide(self, patterns: Sequence[str]) -> None:
        """Have files, given by patterns of their paths from the working directory, not be there."""
        self.plan.hidden += [os.path.join(self.folders[0], pattern) for pattern in patterns]
        self.plan.write(self.home)

    def put(self, path: str, data: bytes) -> None:
        """Have a file hold something else from the beginning."""
        holds = self.home / f"put-{len(self.plan.put)}"
        holds.write_bytes(data)
        self.plan.put[path] = str(holds)
        self.plan.write(self.home)

    def changes(self) -> list[upper.Changed]:
        """What was written in it since this process joined, but for what Python compiles."""
        return [
            change
            for change in upper.changes(self.plan)
            if "/__pycache__" not in change.path and self.known.get(change.path) != _stamp(change.upper)
        ]

    def files(self, folder: str) -> frozenset[str]:
        """The files below a folder, relative to it, as a process in the view sees them."""
        from harness.starts.workdir import files_below

        there = set(files_below(Path(folder)))
        for change in sorted(upper.changes(self.plan), key=lambda change: change.path.count("/")):
            path = os.path.relpath(change.path, folder)
            if path.startswith(".."):
                continue
            if change.kind == "gone" or (change.kind == "folder" and upper.is_opaque(change.upper)):
                there = {known for known in there if not view.is_below(known, path)}
            elif change.kind in ("file", "link"):
                there.add(path)
        return frozenset(there)

    def reached(self) -> list[str]:
        """Nothing: the kernel keeps all files as they were."""
        return []

    def put_back(self) -> list[str]:
        """Nothing: there is nothing to put back."""
        return []

    def end_all(self) -> None:
        """End what runs in it still, such as programs that the script started and did not wait for."""
        until = time.monotonic() + PATIENCE * self.launched
        while (left := [*view.inside(self.plan)]) and time.monotonic() < until:
            time.sleep(0.02)
        until = time.monotonic() + PATIENCE
        while left and time.monotonic() < until:
            for pid in left:
                with suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.002)
            left = [*view.inside(self.plan)]

    def remove(self) -> None:
        """End what runs in it still, and remove what was written."""
        self.end_all()
        _keep_compiled(self.plan)
        view.remove(self.plan)
        with suppress(OSError):
            remove(str(self.home))


def places() -> list[str]:
    """The places that may keep what is written, the best first: on a disk, not where it has to be kept from."""
    found = [str(cache_folder() / VIEWS), tempfile.gettempdir(), *TEMPORARY[::-1]]
    return [found[0], *(os.path.join(place, f"harness-{VIEWS}-{os.getuid()}") for place in found[1:])]


def kept_in() -> list[str]:
    """The places that keep what is written on this machine."""
    return planned.bases(places(), planned.mounts())


def forget() -> None:
    """Remove what views have left whose command, and the process that ends it, were both killed."""
    for place in places():
        for left in left_behind(Path(place)):
            with suppress(OSError):
                remove(str(left))


def _named(values: Iterable[str]) -> Iterator[str]:
    """Folders that are given by an absolute path: of arguments and variables."""
    for value in values:
        for word in str(value).split(os.pathsep):
            path = word.partition("=")[2] or word
            if path.startswith("/") and len(path) < 4096 and "\0" not in path:
                yield path if os.path.isdir(path) else os.path.dirname(path)


def _make_caches() -> Iterator[str]:
    for folder in lasting_caches():
        missing = []
        while not os.path.lexists(folder):
            missing.append(folder)
            folder = os.path.dirname(folder)
        for path in reversed(missing):
            try:
                os.mkdir(path)
            except OSError:
                break
        yield from missing


def _keep_compiled(plan: view.Plan) -> None:
    """Keep what Python has compiled of installed packages: else each run would compile them again."""
    installed = tuple({os.path.realpath(path) for path in sysconfig.get_paths().values()})
    for change in upper.changes(plan):
        if change.kind != "file" or not change.path.endswith(".pyc") or "/__pycache__/" not in change.path:
            continue
        if os.path.lexists(change.path) or not any(view.is_below(change.path, folder) for folder in installed):
            continue
        with suppress(OSError):
            os.makedirs(os.path.dirname(change.path), exist_ok=True)
            beside = f"{change.path}.{os.getpid()}"
            copy_file(change.upper, beside)
            os.replace(beside, change.path)


def _stamp(path: str) -> tuple[int, int]:
    with suppress(OSError):
        found = os.lstat(path)
        return found.st_size, found.st_mtime_ns
    return -1, -1


@functools.cache
def refused_because() -> str | None:
    """Why this machine makes no view, as a trial tells; None where it does."""
    if (why := view.refused_because()) is not None:
        return why
    home = Path(tempfile.mkdtemp(prefix="harness-trial-"))
    try:
        plan = planned.plan(log_name(home.name), places(), [str(home)], [os.getcwd()])
    except (view.Refused, OSError) as error:
        shutil.rmtree(home, ignore_errors=True)
        return str(error)
    try:
        plan.write(home)
        words = [sys.executable, "-I", "-S", view.__file__, str(home), "--", sys.executable, "-I", "-S", "-c", _WRITES]
        tried = subprocess.run(words, capture_output=True, text=True, check=False)  # noqa: S603
        lines = tried.stderr.strip().splitlines()
        return None if tried.returncode == 0 else (lines or ["a process ended without a message"])[-1][:200]
    finally:
        view.remove(plan)
        shutil.rmtree(home, ignore_errors=True)


_WRITES = "import os\nif os.access('.', os.W_OK): os.close(os.open(f'.harness-{os.getpid()}', os.O_CREAT))"
"""What a process does that tries a view: it writes in the working directory, where the user may."""
