"""Isolated runs: a script in a place of its own, after which the user's files are what they were.

There are three levels. *overlay*: a private view of the file system (:mod:`harness.starts.overlay`). *mirror*: a
:class:`~harness.starts.mirror.Mirror` of the working directory and of the script's folder; what the script changes
outside of it is put back at the end, and programs that it starts may write there alone
(:mod:`harness.starts.programs`). *guard*: the mirror, where the machine cannot hold back programs.

The script runs in a copy of this process (:mod:`harness.starts.apart`), which stays outside, writes what it was asked
to write, and reports.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from harness import launch
from harness.errors import CannotTry
from harness.findings import Isolation
from harness.processes import afterwards
from harness.put_back import changes_in, log_name, logs_folder
from harness.starts import caches
from harness.starts.changes import Kept, Noticed
from harness.starts.directory import ABOUT, Directory
from harness.starts.fence import refused_in
from harness.starts.levels import Level, asked_for, chosen, mirror_level
from harness.starts.outside import named as named_by
from harness.starts.overlay import Overlay
from harness.starts.view import Refused
from harness.watch.exchange import name_of_launch

if TYPE_CHECKING:
    from harness.starts.mirror import Mirror

VARIABLE = "HARNESS_ISOLATED"
"""The folder of the directory that this process is to join."""

PREFIX = "harness-run-"

PATIENCE = 120.0
"""Seconds that the ranks of a launcher wait for the directory that the first of them makes."""


@dataclass
class Place:
    """The place where a script runs: an isolated directory, or the working directory itself."""

    script: str
    """Path of the script as it is named there."""
    arguments: tuple[str, ...] = ()
    directory: Directory | Overlay | None = None
    level: Level | None = None
    keep: Path | None = None
    """The folder that is given what the script wrote."""
    hidden: tuple[str, ...] = ()
    """Patterns of files that are not there for it."""
    changes: Kept | Noticed = field(default_factory=Noticed)
    held_back: dict[str, None] = field(default_factory=dict)
    """Uploads that were held back."""
    owner: bool = True
    """Whether this process made the directory, and removes it."""
    undo: ExitStack = field(default_factory=ExitStack)
    """What leaves the place."""
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
            self.undo.close()
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
                f"{self.real(self.changes.failed)}; free some space, have the script write elsewhere, or run it in "
                "place with --in-place"
            )
        if self.directory is not None and crashed is not None and os.strerror(errno.ENOSPC) in crashed.splitlines()[-1]:
            raise CannotTry(
                f"there is no space left for what {self.real(self.script)} writes in {self.directory.home.parent}, "
                "where its own directory was; set TMPDIR to a folder with free space, or run it in place with "
                "--in-place"
            )
        return self._found

    def leave(self) -> None:
        """:meth:`close` where nobody asked for what became of it; a process that the script forked does nothing."""
        if os.getpid() == self._process and self._found is None:
            self.close()

    def _isolation(self) -> Isolation:
        held_back = list(self.held_back)
        if self.directory is None:
            changed = list(self.changes.changed) if isinstance(self.changes, Noticed) else []
            return Isolation("in place", changed=changed, held_back=held_back)
        found = Isolation("directory", hidden=list(self.hidden), held_back=held_back, level=self.level)
        if isinstance(self.directory, Overlay):
            self._of_overlay(found, self.directory)
        else:
            self._of_mirror(found, self.directory)
        return found

    def _of_overlay(self, found: Isolation, overlay: Overlay) -> None:
        if self.owner:
            overlay.end_all()
        changes = overlay.changes()
        written = {change.path: change.size for change in changes if change.kind == "file"}
        found.wrote, found.bytes = len(written), sum(written.values())
        found.removed = sum(change.kind == "gone" for change in changes)
        found.programs = list(self.changes.programs)
        where = {change.path: change.upper for change in changes}
        found.cached = caches.keep(where, written)
        if self.keep is not None:
            _keep(self.keep, written, where)
            found.kept_in = str(self.keep)

    def _of_mirror(self, found: Isolation, directory: Directory) -> None:
        assert isinstance(self.changes, Kept)
        mirror, changes = directory.mirror, self.changes
        outside = _outside(directory)
        written = dict(mirror.written())
        written |= {path: os.path.getsize(path) for path in outside if os.path.isfile(path)}
        found.wrote, found.bytes, found.put_back = len(written), sum(written.values()), outside
        found.programs = list(changes.programs)
        for told in refused_in(directory.home):
            what = f" could not change {told['path']}" if told["path"] else " could not change a file"
            ended = "" if told["status"] is None else f"; it ended with exit status {told['status']}"
            found.refused.append(
                f"{told['program']}{what}: programs may write only in the directory of this run{ended}"
            )
        where = {path: _where(mirror, path) for path in written}
        found.cached = caches.keep(where, written)
        for path, linked in mirror.changed():
            if path not in outside:
                (found.changed if linked or changes.programs else found.elsewhere).append(path)
        if self.keep is not None:
            _keep(self.keep, written, where)
            found.kept_in = str(self.keep)


def _where(mirror: Mirror, path: str) -> str:
    return mirror.of(path) if os.path.isfile(mirror.of(path)) else path


def _outside(directory: Directory) -> list[str]:
    """The paths outside that were changed, of all processes."""
    logs = sorted(directory.logs.iterdir()) if directory.logs.is_dir() else []
    changes = [change for log in logs for change in changes_in(log)]
    paths = [change.get("target") if change["kind"] == "moved" else change["path"] for change in changes]
    kinds = ("made", "file", "link", "folder", "moved")
    return list(dict.fromkeys(str(path) for path, each in zip(paths, changes, strict=True) if each["kind"] in kinds))


def _keep(folder: Path, written: Mapping[str, int], where: Mapping[str, str]) -> None:
    """Give a folder what was written, by its path from the working directory, or else by its whole path.

    Args:
        where: where each file lies, by the path that the script gave it.

    Raises:
        CannotTry: that is not possible.
    """
    here = os.path.realpath(os.getcwd()) + os.sep
    for path in written:
        inside = path.startswith(here)
        target = folder / (path.removeprefix(here) if inside else f"outside{path}")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            if where[path] != path:
                shutil.move(where[path], target)
            else:
                shutil.copy2(path, target)
        except OSError as error:
            raise CannotTry(f"--keep {folder} could not receive {path} ({error.strerror}); choose another") from error


def folders_of(script: str, *, module: bool) -> tuple[str, ...]:
    """The folders that are mirrored for a script, without links: the working directory, and the script's own."""
    here = os.path.realpath(os.getcwd())
    own = here if module else os.path.realpath(os.path.dirname(os.path.abspath(script)))
    if f"{own}{os.sep}".startswith(f"{here}{os.sep}"):
        return (here,)
    return (here, own)


@contextmanager
def placed(
    script: str,
    arguments: Sequence[str] = (),
    *,
    module: bool = False,
    in_place: bool = False,
    keep: Path | None = None,
    hidden: Sequence[str] = (),
    level: Level | None = None,
) -> Iterator[Place]:
    """Where a script is to be run; nobody has gone there yet.

    With :data:`VARIABLE` set it is the directory that another process has made. Of the ranks of somebody else's
    launcher the first on each machine makes one for all.

    Args:
        in_place: whether it is run in the working directory, as it is.
        keep: the folder that is given what the script wrote.
        hidden: patterns of files that are not there for it.
        level: how it is isolated; the best that this machine allows, where nobody says.

    Raises:
        CannotTry: no directory could be made.
    """
    if in_place:
        place = Place(script, tuple(arguments))
        yield place
        place.leave()
        return
    folders = folders_of(script, module=module)
    with ExitStack() as stack:
        directory, owner = _directory(folders, stack, level, (script, *arguments))
        directory.hide(hidden)
        joined = directory.mirror.holds(os.path.realpath(os.getcwd()))  # whoever made it has named all for it
        named, *given = (directory.inside(each, () if joined else folders) for each in (script, *arguments))
        changes = Noticed() if isinstance(directory, Overlay) else directory.guarded()
        place = Place(named, tuple(given), directory, directory.level, keep, tuple(hidden), changes, owner=owner)
        try:
            yield place
        except CannotTry as error:
            place.leave()
            raise CannotTry(place.real(str(error))) from None
        finally:
            place.leave()


@contextmanager
def isolated(script: str, arguments: Sequence[str] = (), **how: Any) -> Iterator[Place]:
    """A :func:`placed` script is run by this process, which goes to its mirror, and leaves it with the block.

    Raises:
        CannotTry: this process was told to join a view, which it could not leave.
    """
    with placed(script, arguments, level=None if how.get("in_place") else mirror_level(), **how) as place:
        if isinstance(place.directory, Overlay):
            raise CannotTry("a private view of the file system needs a separate process; set HARNESS_ISOLATION=mirror")
        enter(place)
        yield place


def enter(place: Place) -> None:
    """Have this process work in a place, with what guards it; :attr:`Place.undo` leaves it.

    Raises:
        Refused: the kernel does not allow a view.
    """
    directory, undo = place.directory, place.undo
    if isinstance(directory, Overlay):
        directory.enter()
        set_variables(directory.environment())
        caches.bring(directory.mirror)

    from harness.starts.guard import FileGuard, Started
    from harness.starts.programs import Programs
    from harness.starts.uploads import Uploads
    from harness.watch.instrument.patches import Patches

    patches = Patches(_raised)
    undo.callback(patches.undo)
    if isinstance(directory, Directory):
        go(directory, undo)
    if directory is not None:
        Uploads(place.held_back).install(patches)
        Programs.of(directory, place.changes).install(patches)
    if isinstance(directory, Overlay):
        Started(place.changes).install(patches)
    else:
        FileGuard(place.changes).install(patches)


def _directory(
    folders: Sequence[str], stack: ExitStack, level: Level | None, words: Sequence[str]
) -> tuple[Directory | Overlay, bool]:
    """The directory that this process works in, and whether it is the one that made it."""
    if (joined := _joined()) is not None:
        return joined, False
    if (launch.world_size() or 1) == 1 or "LOCAL_RANK" not in os.environ:
        return _made(Path(tempfile.mkdtemp(prefix=PREFIX)), folders, stack, level, words), True
    home = Path(tempfile.gettempdir(), f"{PREFIX}{name_of_launch()}")
    if os.environ["LOCAL_RANK"] == "0":
        try:
            home.mkdir(mode=0o700)
        except FileExistsError as error:
            raise CannotTry(
                f"{home}, in which the ranks were to work, already exists; remove it, or set TMPDIR to another folder"
            ) from error
        # Tried before: the other ranks join what they find, and none of them may go on elsewhere.
        directory = _made(home, folders, stack, level or chosen(), words)
        if isinstance(directory, Overlay):
            directory.launched = True
        directory.share()
        (home / SHARED).touch()
        return directory, True
    until = time.monotonic() + PATIENCE
    while not (home / SHARED).exists():
        if time.monotonic() > until:
            raise CannotTry(
                f"the first rank of this machine made no isolated working directory in {home.parent} within "
                f"{PATIENCE:.0f} s; see its output for the reason, or use --in-place"
            )
        time.sleep(0.02)
    if home.lstat().st_uid != os.getuid() or not stat.S_ISDIR(home.lstat().st_mode):
        raise CannotTry(f"{home}, where the ranks work, is not a folder of your own; set TMPDIR to another folder")
    return directory_at(home), False


SHARED = "shared"
"""A file that is there when the ranks may join."""


def directory_at(home: Path) -> Directory | Overlay:
    """The directory that another process has made and shares."""
    return Overlay.join(home) if Overlay.is_at(home) else Directory.join(home)


def _joined() -> Directory | Overlay | None:
    home = Path(os.environ.get(VARIABLE, ""))
    there = home.is_absolute() and ((home / ABOUT).exists() or Overlay.is_at(home))
    return directory_at(home) if there else None


def _made(
    home: Path, folders: Sequence[str], stack: ExitStack, level: Level | None, words: Sequence[str]
) -> Directory | Overlay:
    stack.enter_context(afterwards(home, logs_in(home)))
    return make(home, folders, logs_in(home), level or chosen(tried=False), words=words)


def make(
    home: Path,
    folders: Sequence[str],
    logs: Path,
    level: Level,
    own: Sequence[str] = (),
    words: Sequence[str] = (),
) -> Directory | Overlay:
    """A directory of the level.

    Args:
        own: folders outside of it that are the command's own.
        words: the script and its arguments, where they are known.
    """
    if level == "overlay":
        try:
            return Overlay.make(home, folders, own, words)
        except Refused as error:
            if asked_for() is not None:
                raise CannotTry(f"no private view of the file system could be made: {error}") from error
            level = mirror_level()
    return Directory.make(home, folders, logs, own, level, named_by(words[0], words[1:], folders) if words else ())


def logs_in(home: Path) -> Path:
    """Folder of the logs of a directory: apart from it, as temporary files may be kept in memory."""
    return logs_folder() / log_name(home.name)


@contextmanager
def shared(folders: Sequence[str]) -> Iterator[Directory | Overlay]:
    """A directory that other processes join, which are started in the block with its :meth:`Directory.environment`.

    Raises:
        CannotTry: it could not be made, or not all could be put back.
    """
    with ExitStack() as stack:
        directory = _made(Path(tempfile.mkdtemp(prefix=PREFIX)), folders, stack, chosen(), ())
        directory.share()
        try:
            yield directory
        finally:
            left = directory.put_back()
            directory.remove()
    if left:
        raise CannotTry(f"{', '.join(left)} could not be restored; see harness doctor")


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

    The guard stays until the process has ended: what Python runs last is the script's too.

    Raises:
        CannotTry: what the script was about to change could not be kept.
    """
    from harness.starts.guard import FileGuard, Started
    from harness.starts.programs import Programs
    from harness.starts.uploads import Uploads
    from harness.watch.instrument.patches import Patches

    directory = directory_at(Path(os.environ[VARIABLE]))
    patches = Patches(_raised)
    changes: Kept | Noticed
    if isinstance(directory, Overlay):
        changes = Noticed()
        caches.bring(directory.mirror)
        Started(changes).install(patches)
    else:
        changes = directory.guarded()
        sys.path[:] = [_path(each, directory.mirror) for each in sys.path]
        FileGuard(changes).install(patches)
    Programs.of(directory, changes).install(patches)
    Uploads().install(patches)
    yield
    if changes.failed is not None:
        raise CannotTry(directory.mirror.real(changes.failed))


def _raised(error: Exception) -> None:
    """What a wrapper of the guard raises itself ends nothing of the script's."""


def go(directory: Directory, undo: ExitStack) -> None:
    """Work in the directory: the folder, the variables and the paths that modules are found in."""
    before = os.getcwd()
    here = os.path.realpath(before)
    there = here if directory.mirror.holds(here) else directory.mirror.of(here)
    undo.callback(_back, before)
    environment = directory.environment() | {"PWD": there}
    undo.callback(set_variables, {name: os.environ.get(name) for name in environment})
    set_variables(environment)
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


def set_variables(variables: Mapping[str, Any]) -> None:
    """Set variables of the environment, and take those away that are None."""
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
    tempfile.tempdir = None
