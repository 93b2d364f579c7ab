"""Isolated runs: a script in a directory of its own, after which the user's files are what they were.

The directory is a :class:`~harness.starts.mirror.Mirror` of the working directory and of the script's folder. What the
script changes outside of it is put back at the end, by another process where this one is killed. What was changed all
the same is named (:class:`~harness.findings.Isolation`).
"""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, TypeVar, cast

from harness import launch
from harness.errors import CannotTry
from harness.files import write_atomically
from harness.findings import Isolation
from harness.processes import afterwards
from harness.put_back import CannotKeep, Log, changes_in, log_name, logs_folder, put_back_all, remove
from harness.starts import caches
from harness.starts.guard import FileGuard, Kept, Noticed, inductor_cache
from harness.starts.mirror import Mirror, Stamp
from harness.starts.uploads import Uploads
from harness.watch.exchange import name_of_launch
from harness.watch.instrument.patches import Patches

VARIABLE = "HARNESS_ISOLATED"
"""The folder of the directory that this process is to join."""

PREFIX = "harness-run-"

PATIENCE = 120.0
"""Seconds that the ranks of a launcher wait for the directory that the first of them makes."""

AT, TEMPORARY, ABOUT = "at", "tmp", "about.json"


@dataclass(frozen=True)
class Directory:
    """An isolated working directory on the disk: the mirror, a folder for temporary files, and where its log lies."""

    home: Path
    mirror: Mirror
    logs: Path
    """Folder with a log for each process that joins."""
    folders: tuple[str, ...] = ()
    """Folders that are mirrored; none where another process has named all that lies in them."""
    free: tuple[str, ...] = ()
    """Folders outside in which nothing is put back: they are the command's own."""

    @classmethod
    def make(cls, home: Path, folders: Sequence[str], logs: Path, free: Sequence[str] = ()) -> Directory:
        """Make one with these folders, given by their absolute paths without links; ``logs`` is where its log lies.

        Raises:
            CannotTry: there is no room for it.
        """
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        mirror = Mirror(home / AT)
        try:
            (home / TEMPORARY).mkdir()
            for folder in folders:
                mirror.add(folder)
            caches.bring(mirror)
        except (CannotKeep, OSError) as error:
            remove(str(home))
            why = error.strerror if isinstance(error, OSError) else str(error)
            raise CannotTry(
                f"no isolated working directory could be made in {home.parent} ({why}); set TMPDIR to a folder with "
                "room, or run the script where it lies with --in-place"
            ) from error
        return cls(home, mirror, logs, tuple(folders), tuple(free))

    def share(self) -> None:
        """Let other processes join."""
        about = {
            "logs": str(self.logs),
            "free": self.free,
            "linked": self.mirror.linked,
            "listing": self.mirror.listing,
        }
        write_atomically(self.home / ABOUT, json.dumps(about))

    @classmethod
    def join(cls, home: Path) -> Directory:
        """The directory that another process has made and shares."""
        about = json.loads((home / ABOUT).read_text(encoding="utf-8"))
        linked, listing = ({path: _stamp(each) for path, each in about[name].items()} for name in ("linked", "listing"))
        mirror = Mirror(home / AT, linked=linked, listing=listing)
        mirror.copied = dict(mirror.stamps())
        return cls(home, mirror, Path(about["logs"]), free=tuple(about["free"]))

    def inside(self, word: str, folders: Sequence[str]) -> str:
        """A word of a command line with the paths of the mirror for those of its folders."""
        for folder in folders:
            # No part of another path, or of a URL.
            found = rf"(?<![\w./-]){re.escape(folder)}(?![\w.-])"
            word = re.sub(found, lambda _, folder=folder: self.mirror.of(folder), word)  # type: ignore[misc]
        return word

    def environment(self) -> dict[str, str]:
        """What is set for a script in it."""
        kept = {} if "TORCHINDUCTOR_CACHE_DIR" in os.environ else {"TORCHINDUCTOR_CACHE_DIR": inductor_cache()}
        return {"TMPDIR": str(self.home / TEMPORARY), VARIABLE: str(self.home), **kept}

    @contextmanager
    def entered(self) -> Iterator[None]:
        """This process in it, unguarded: what it starts joins."""
        with ExitStack() as undo:
            _go(self, undo)
            yield

    def hide(self, patterns: Sequence[str]) -> None:
        """Have files, given by patterns of their paths from the working directory, not be there."""
        for pattern in patterns:
            for found in Path(self.mirror.of(self.folders[0])).glob(pattern):
                remove(self.mirror.own(str(found), follow=False))

    def guarded(self) -> Kept:
        """What a guard of this process tells of changes."""
        return Kept(self.mirror, Log(self.logs / _number()), (str(self.home), *self.free))

    def put_back(self) -> list[str]:
        return put_back_all(self.logs)

    def remove(self) -> None:
        with suppress(OSError):
            remove(str(self.home))

    def reached(self) -> list[str]:
        """Real files that were changed through links: nothing was heard of that."""
        return [path for path, linked in self.mirror.changed() if linked]


def _stamp(given: Sequence[int]) -> Stamp:
    inode, size, changed = given
    return inode, size, changed


@dataclass
class Place:
    """The place where a script runs: an isolated directory, or the working directory itself."""

    script: str
    """Path of the script as it is named there."""
    arguments: tuple[str, ...] = ()
    directory: Directory | None = None
    keep: Path | None = None
    """The folder that is given what the script wrote."""
    hidden: tuple[str, ...] = ()
    """Patterns of files that are not there for it."""
    changes: Kept | Noticed = field(default_factory=Noticed)
    uploads: Uploads = field(default_factory=Uploads)
    owner: bool = True
    """Whether this process made the directory, and removes it."""
    _stack: ExitStack = field(default_factory=ExitStack)
    _process: int = field(default_factory=os.getpid)
    _found: Isolation | None = None

    def real(self, text: str) -> str:
        """A text with the user's own paths."""
        return text if self.directory is None else self.directory.mirror.real(text)

    def close(self, crashed: str | None = None) -> Isolation:
        """Put back what is the user's, and say what became of it; the working directory is the user's again.

        Raises:
            CannotTry: what the script was about to change could not be kept; or the script ``crashed``, as the end of
                its traceback says, because there was no room for what it wrote.
        """
        if self._found is None:
            self._stack.close()
            self._found, left = Isolation("directory"), list[str]()
            try:
                self._found = self._isolation()
            finally:
                if self.directory is not None and self.owner:
                    left = self.directory.put_back()
                    self.directory.remove()
            self._found.not_put_back = left
        if self.changes.failed is not None:
            raise CannotTry(
                f"{self.real(self.changes.failed)}; free some room, have the script write elsewhere, or run it where "
                "it lies with --in-place"
            )
        if self.directory is not None and crashed is not None and os.strerror(errno.ENOSPC) in crashed.splitlines()[-1]:
            raise CannotTry(
                f"there is no room for what {self.real(self.script)} writes in {self.directory.home.parent}, where its "
                "own directory was; set TMPDIR to a folder with room, or run it where it lies with --in-place"
            )
        return self._found

    def leave(self) -> None:
        """:meth:`close` where nobody asked for what became of it; a process that the script forked does nothing."""
        if os.getpid() == self._process and self._found is None:
            self.close()

    def _isolation(self) -> Isolation:
        held_back = list(self.uploads.held_back)
        if self.directory is None:
            changed = list(self.changes.changed) if isinstance(self.changes, Noticed) else []
            return Isolation("in place", changed=changed, held_back=held_back)
        assert isinstance(self.changes, Kept)
        mirror, changes = self.directory.mirror, self.changes
        outside = _outside(self.directory)
        written = dict(mirror.written())
        written |= {path: os.path.getsize(path) for path in outside if os.path.isfile(path)}
        found = Isolation(
            "directory",
            wrote=len(written),
            bytes=sum(written.values()),
            put_back=outside,
            programs=list(changes.programs),
            hidden=list(self.hidden),
            held_back=held_back,
        )
        found.cached = caches.keep(mirror, written)
        for path, linked in mirror.changed():
            if path not in outside:
                (found.changed if linked or changes.programs else found.elsewhere).append(path)
        if self.keep is not None:
            _keep(self.keep, mirror, written)
            found.kept_in = str(self.keep)
        return found


def _outside(directory: Directory) -> list[str]:
    """The paths outside that were changed, of all processes."""
    logs = sorted(directory.logs.iterdir()) if directory.logs.is_dir() else []
    changes = [change for log in logs for change in changes_in(log)]
    paths = [change.get("target") if change["kind"] == "moved" else change["path"] for change in changes]
    kinds = ("made", "file", "link", "folder", "moved")
    return list(dict.fromkeys(str(path) for path, each in zip(paths, changes, strict=True) if each["kind"] in kinds))


def _keep(folder: Path, mirror: Mirror, written: dict[str, int]) -> None:
    """Move what was written into a folder, by its path from the working directory, or else by its whole path.

    Raises:
        CannotTry: that is not possible.
    """
    here = mirror.real(os.getcwd()) + os.sep
    for path in written:
        inside = path.startswith(here)
        target = folder / (path.removeprefix(here) if inside else f"outside{path}")
        source = mirror.of(path) if os.path.isfile(mirror.of(path)) else path
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            if mirror.holds(os.path.realpath(source)):
                shutil.move(source, target)
            else:
                shutil.copy2(source, target)
        except OSError as error:
            raise CannotTry(f"--keep {folder} could not be given {path} ({error.strerror}); choose another") from error


def folders_of(script: str, *, module: bool) -> tuple[str, ...]:
    """The folders that are mirrored for a script, without links: the working directory, and the script's own."""
    here = os.path.realpath(os.getcwd())
    own = here if module else os.path.realpath(os.path.dirname(os.path.abspath(script)))
    if f"{own}{os.sep}".startswith(f"{here}{os.sep}"):
        return (here,)
    return (here, own)


@contextmanager
def isolated(
    script: str,
    arguments: Sequence[str] = (),
    *,
    module: bool = False,
    in_place: bool = False,
    keep: Path | None = None,
    hidden: Sequence[str] = (),
) -> Iterator[Place]:
    """Where a script is run by this process, which goes there, and leaves it with the block.

    With :data:`VARIABLE` set it joins the directory that another process has made. Of the ranks of somebody else's
    launcher the first on each machine makes one for all.

    Args:
        in_place: whether it is run in the working directory, as it is.
        keep: the folder that is given what the script wrote.
        hidden: patterns of files that are not there for it.

    Raises:
        CannotTry: no directory could be made.
    """
    if in_place:
        place = Place(script, tuple(arguments))
        with _entered(place):
            yield place
        return
    folders = folders_of(script, module=module)
    with ExitStack() as stack:
        directory, owner = _directory(folders, stack)
        directory.hide(hidden)
        joined = directory.mirror.holds(os.path.realpath(os.getcwd()))  # whoever made it has named all for it
        named, *given = (directory.inside(each, () if joined else folders) for each in (script, *arguments))
        place = Place(named, tuple(given), directory, keep, tuple(hidden), directory.guarded(), owner=owner)
        with _entered(place):
            yield place


def _directory(folders: Sequence[str], stack: ExitStack) -> tuple[Directory, bool]:
    """The directory that this process works in, and whether it is the one that made it."""
    joined = Path(os.environ.get(VARIABLE, ""), ABOUT)
    if joined.is_absolute() and joined.exists():
        return Directory.join(joined.parent), False
    if (launch.world_size() or 1) == 1 or "LOCAL_RANK" not in os.environ:
        return _made(Path(tempfile.mkdtemp(prefix=PREFIX)), folders, stack), True
    home = Path(tempfile.gettempdir(), f"{PREFIX}{name_of_launch()}")
    if os.environ["LOCAL_RANK"] == "0":
        try:
            home.mkdir(mode=0o700)
        except FileExistsError as error:
            raise CannotTry(
                f"{home}, in which the ranks were to work, is there already; remove it, or set TMPDIR to another folder"
            ) from error
        directory = _made(home, folders, stack)
        directory.share()
        return directory, True
    until = time.monotonic() + PATIENCE
    while not (home / ABOUT).exists():
        if time.monotonic() > until:
            raise CannotTry(
                f"the first rank of this machine made no isolated working directory in {home.parent} within "
                f"{PATIENCE:.0f} s; its own output says why, or use --in-place"
            )
        time.sleep(0.02)
    if home.lstat().st_uid != os.getuid() or not stat.S_ISDIR(home.lstat().st_mode):
        raise CannotTry(f"{home}, where the ranks work, is not a folder of your own; set TMPDIR to another folder")
    return Directory.join(home), False


def _made(home: Path, folders: Sequence[str], stack: ExitStack) -> Directory:
    stack.enter_context(afterwards(home, logs_in(home)))
    return Directory.make(home, folders, logs_in(home))


def logs_in(home: Path) -> Path:
    """Folder of the logs of a directory: apart from it, as temporary files may be kept in memory."""
    return logs_folder() / log_name(home.name)


@contextmanager
def shared(folders: Sequence[str]) -> Iterator[Directory]:
    """A directory that other processes join, which are started in the block with its :meth:`Directory.environment`.

    Raises:
        CannotTry: it could not be made, or not all could be put back.
    """
    with ExitStack() as stack:
        directory = _made(Path(tempfile.mkdtemp(prefix=PREFIX)), folders, stack)
        directory.share()
        try:
            yield directory
        finally:
            left = directory.put_back()
            directory.remove()
    if left:
        raise CannotTry(f"{', '.join(left)} could not be put back as it was; see harness doctor")


Value = TypeVar("Value")


def named(value: Value, real: Callable[[str], str]) -> Value:
    """A report, or a part of one, with the user's own paths in all of its texts."""
    found: Any = value
    if isinstance(value, str):
        found = real(value)
    elif isinstance(value, Mapping):
        found = {named(key, real): named(each, real) for key, each in value.items()}
    elif isinstance(value, (list, tuple)):
        found = type(value)(named(each, real) for each in value)
    elif is_dataclass(value) and not isinstance(value, type):
        own = {each.name: named(getattr(value, each.name), real) for each in fields(value) if each.init}
        found = replace(value, **own)
    return cast("Value", found)


@contextmanager
def joined() -> Iterator[None]:
    """Guards this process, which was started in the directory that another one has made (:data:`VARIABLE`).

    Raises:
        CannotTry: what the script was about to change could not be kept.
    """
    directory = Directory.join(Path(os.environ[VARIABLE]))
    kept, patches = directory.guarded(), Patches(_raised)
    sys.path[:] = [_path(each, directory.mirror) for each in sys.path]
    try:
        FileGuard(kept).install(patches)
        Uploads().install(patches)
        yield
    finally:
        patches.undo()
    if kept.failed is not None:
        raise CannotTry(directory.mirror.real(kept.failed))


def _number() -> str:
    return f"{os.getpid()}-{time.monotonic_ns()}"


@contextmanager
def _entered(place: Place) -> Iterator[None]:
    """This process in the place, with what guards it."""
    patches = Patches(_raised)
    undo = place._stack
    undo.callback(patches.undo)
    guard = FileGuard(place.changes)
    if place.directory is not None:
        _go(place.directory, undo)
        place.uploads.install(patches)
    guard.install(patches)
    try:
        yield
    except CannotTry as error:
        place.leave()
        raise CannotTry(place.real(str(error))) from None
    finally:
        place.leave()


def _raised(error: Exception) -> None:
    """What a wrapper of the guard raises itself ends nothing of the script's."""


def _go(directory: Directory, undo: ExitStack) -> None:
    """Work in the directory: the folder, the variables and the paths that modules are found in."""
    before = os.getcwd()
    here = os.path.realpath(before)
    there = here if directory.mirror.holds(here) else directory.mirror.of(here)
    undo.callback(_back, before)
    environment = directory.environment() | {"PWD": there}
    undo.callback(_set, {name: os.environ.get(name) for name in environment})
    _set(environment)
    tempfile.tempdir = None
    os.chdir(there)
    paths = sys.path[:]
    undo.callback(sys.path.__setitem__, slice(None), paths)
    sys.path[:] = [_path(each, directory.mirror) for each in paths]


def _path(path: str, mirror: Mirror) -> str:
    """A folder of modules, in the mirror where it has that itself: a project that is installed as it lies there."""
    there = mirror.of(os.path.abspath(path))
    return there if path and os.path.isdir(there) and mirror.holds(os.path.realpath(there)) else path


def _back(folder: str) -> None:
    with suppress(OSError):
        os.chdir(folder)


def _set(variables: dict[str, Any]) -> None:
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
    tempfile.tempdir = None
