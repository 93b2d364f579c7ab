"""The isolated working directory: the user's folders once more, of which only what is written is copied.

A mirror is a root below which the folders that a script runs in lie under the paths that they have: what is
``/home/ada/project`` is ``ROOT/home/ada/project``. Small files in it are copies. What is large, mounted, or beside it
is a link to the real one, and becomes a copy before it is changed: a linked file as a whole, a linked folder one level
at a time (:meth:`Mirror.own`). So setting one up costs what is small, and writing costs what is written.
"""

from __future__ import annotations

import fcntl
import os
import stat
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from harness.put_back import CannotKeep, beside_of, copy_file, remove
from harness.starts.outside import files_in

SMALL = 16 * 2**20
"""Bytes of a file that is copied; a larger one is linked."""

COPIED = 256 * 2**20
"""Bytes that are copied in all: what comes then, further down in the folders, is linked."""

ENTRIES = 5_000
"""Files that are copied; what comes then is linked, file by file."""

LINKS = 200_000
"""Files that are linked one by one: with more, no mirror is made."""

LINKED = frozenset(
    ".hg .svn .venv venv .tox .nox node_modules .mypy_cache .pytest_cache .ruff_cache .eggs site-packages".split()
)
"""Folders that are no script's data, and are linked as a whole."""

NOT_DATA = LINKED | {".git"}
"""Folders of which nobody asks what a script wrote in them."""

MOST_LINKS = 40
"""Links that a path is followed through, as the system does."""

Stamp = tuple[int, int, int, int]
"""What changes with a file: its inode, its size and the times of a change to what it holds, and to all about it."""


def stamp(path: str) -> Stamp | None:
    """A file's stamp; None where there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return _of(found)


def real_in(text: str, root: str) -> str:
    """A text in which paths of the mirror at ``root`` are those that they stand for."""
    return text.replace(f"{root}/", "/").replace(root, "/") if root else text


@dataclass
class Mirror:
    """A root below which some folders are once more."""

    root: Path
    copied: dict[str, Stamp] = field(default_factory=dict)
    """The files that are copies, by their paths in the mirror, as they were when they were made."""
    linked: dict[str, Stamp] = field(default_factory=dict)
    """The real files that were linked one by one, as they were."""
    listing: dict[str, Stamp] = field(default_factory=dict)
    """The real files of the folders that are mirrored, as they were."""
    named: tuple[str, ...] = ()
    """Paths outside that the script names: their files are in the listing."""

    def __post_init__(self) -> None:
        self._at = os.path.realpath(self.root)
        os.makedirs(self._at, exist_ok=True)
        self._budget = _Budget()

    def of(self, path: str) -> str:
        """Path in the mirror of an absolute path."""
        return self._at + path

    def real(self, text: str) -> str:
        """A text in which paths of the mirror are those that they stand for."""
        return real_in(text, self._at)

    def holds(self, path: str) -> bool:
        """Whether an absolute path without links lies in the mirror."""
        return path == self._at or path.startswith(self._at + os.sep)

    @property
    def left_out(self) -> frozenset[str]:
        """Folders that :mod:`harness.starts.moments` leaves out."""
        return frozenset()

    @property
    def roots(self) -> tuple[str, ...]:
        """The folders that :mod:`harness.starts.moments` looks at."""
        return (self._at,)

    def add(self, folder: str) -> None:
        """Have a folder, given by its absolute path without links, with copies of what is small in it.

        The folders above it are there too, and what lies beside it in them is linked.
        """
        if folder == os.sep:
            self._fill_beside(os.sep)
            return
        at = ""
        for name in folder.strip(os.sep).split(os.sep):
            self._fill_beside(at or os.sep)
            at = f"{at}{os.sep}{name}"
            here = self.of(at)
            if os.path.islink(here):
                os.unlink(here)
            os.makedirs(here, exist_ok=True)
        self._fill(folder)

    def look_at(self, paths: Sequence[str]) -> None:
        """Have the files at these paths outside compared at the end."""
        self.named = tuple(paths)
        for path in paths:
            for file in files_in(path):
                if (found := stamp(file)) is not None:
                    self.listing[file] = self.linked[file] = found

    def _fill_beside(self, folder: str) -> None:
        """Link what lies in a folder above, where that has not been done."""
        for entry in _entries(folder):
            here = os.path.join(self.of(folder), entry.name)
            if not os.path.lexists(here) and entry.path != self._at:
                os.symlink(entry.path, here)

    def _fill(self, folder: str) -> None:
        """Copy what is small, and link the rest: level by level, so that what is near is copied first."""
        waiting, last, found = deque([folder]), deque[str](), list[tuple[str, os.stat_result]]()
        while waiting or last:
            below = (waiting or last).popleft()
            # The oldest first: scripts ask which checkpoint was made last, and a copy's time is that of the copying.
            for entry in sorted(_entries(below), key=_age):
                here = self.of(entry.path)
                if os.path.islink(here):
                    os.unlink(here)  # it lay beside another folder that is mirrored
                if os.path.lexists(here) or entry.path == self._at:
                    continue  # the mirror itself, or that other folder
                if entry.is_symlink():
                    os.symlink(self._target_of(entry.path, folder), here)
                elif entry.is_dir() and self._is_own(entry, below):
                    os.mkdir(here)
                    (last if "/.git" in entry.path[len(folder) :] else waiting).append(entry.path)
                elif entry.is_file():
                    self._fill_file(entry, here)
                else:
                    os.symlink(entry.path, here)
            with suppress(OSError):
                found.append((self.of(below), os.stat(below)))
        for here, about in reversed(found):  # when nothing more is made in them
            os.chmod(here, stat.S_IMODE(about.st_mode))
            os.utime(here, ns=(about.st_atime_ns, about.st_mtime_ns))

    def _target_of(self, link: str, folder: str) -> str:
        """Target of a link of the user's: in the mirror where it leads into the folder."""
        target = os.readlink(link)
        inside = target == folder or target.startswith(folder + os.sep)
        return self.of(target) if inside else target

    def _is_own(self, entry: os.DirEntry[str], below: str) -> bool:
        if entry.name in LINKED:
            return False
        with suppress(OSError):
            return os.access(entry.path, os.R_OK | os.X_OK) and os.stat(entry.path).st_dev == os.stat(below).st_dev
        return False

    def _fill_file(self, entry: os.DirEntry[str], here: str) -> None:
        found = entry.stat()
        if found.st_size <= SMALL and os.access(entry.path, os.R_OK) and self._budget.takes(found.st_size):
            self.listing[entry.path] = _of(found)
            self._copy(entry.path, here)
        else:
            self.linked[entry.path] = self.listing[entry.path] = _of(found)
            if len(self.linked) > LINKS:
                raise CannotKeep(
                    f"{os.path.dirname(entry.path)} and the folders beside it hold more than {LINKS:,} files, too many "
                    "for a mirror; harness doctor shows how to get a private view of the file system, which needs no "
                    "mirror"
                )
            os.symlink(entry.path, here)

    def _copy(self, real: str, here: str) -> None:
        try:
            copy_file(real, here)
        except FileNotFoundError:  # somebody has removed it meanwhile
            return
        except OSError as error:
            raise CannotKeep(f"{real} cannot be copied to {here} ({error.strerror})") from error
        if (made := stamp(here)) is not None:
            self.copied[here] = made

    def own(self, path: str, *, follow: bool = True, empty: bool = False) -> str:
        """Make a path the mirror's own before it is changed: links on the way to it become copies.

        Args:
            path: absolute, or relative to the working directory.
            follow: whether what its last part links to is changed, and not the link.
            empty: whether what it held is not wanted.

        Returns:
            the path without links, in the mirror or outside of it.

        Raises:
            CannotKeep: there is no room for a copy.
        """
        path = os.path.join(os.getcwd(), path)
        waiting, at, links = [part for part in reversed(path.split(os.sep)) if part not in ("", ".")], os.sep, 0
        while waiting:
            name = waiting.pop()
            if name == "..":
                at = os.path.dirname(at)
                continue
            here = os.path.join(at, name)
            if not os.path.islink(here) or (not waiting and not follow) or links > MOST_LINKS:
                at = here
                continue
            links += 1
            if self.holds(here) and self._takes(here, empty=empty and not waiting):
                at = here
                continue
            target = os.readlink(here)
            at = os.sep if target.startswith(os.sep) else at
            waiting += [part for part in reversed(target.split(os.sep)) if part not in ("", ".")]
        return at

    def _takes(self, here: str, *, empty: bool) -> bool:
        """Replace a link in the mirror that leads out of it by what it leads to."""
        real = os.path.realpath(here)
        if self.holds(real):
            return False
        with self._alone():
            if not os.path.islink(here):
                return True  # another process was first
            beside = beside_of(here)
            if os.path.isdir(real):
                os.mkdir(beside)
                for entry in _entries(real):
                    os.symlink(entry.path, os.path.join(beside, entry.name))
                os.unlink(here)
            elif os.path.isfile(real):
                if empty:
                    Path(beside).touch(stat.S_IMODE(os.stat(real).st_mode))
                else:
                    self._copy(real, beside)
                if (made := self.copied.pop(beside, None)) is not None:
                    self.copied[here] = made
            else:
                return False  # a device, a pipe, nothing
            os.replace(beside, here)
        return True

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """No other process makes something of the mirror its own meanwhile."""
        with open(f"{self._at}.lock", "a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def stamps(self) -> Iterator[tuple[str, Stamp]]:
        """The files that are the mirror's own, by their paths in it, as they are."""
        for below, folders, files in os.walk(self._at):
            folders[:] = [each for each in folders if each != "__pycache__" and each not in NOT_DATA]
            for name in files:
                here = os.path.join(below, name)
                with suppress(FileNotFoundError):  # of another process, which has ended
                    found = os.lstat(here)
                    if stat.S_ISREG(found.st_mode):
                        yield here, _of(found)

    def written(self) -> Iterator[tuple[str, int]]:
        """The files that are not what they were when they were copied, by their real paths, with their sizes."""
        for here, now in self.stamps():
            if self.copied.get(here) != now:
                yield self.real(here), now[1]

    def changed(self) -> Iterator[tuple[str, bool]]:
        """Real files that are not what they were, and whether a link of the mirror leads to each.

        What this command prints to is not among them.
        """
        printed = {inode for number in (1, 2) if (inode := _inode(number)) is not None}
        for path, before in self.listing.items():
            if before[0] not in printed and stamp(path) != before:
                yield path, path in self.linked
        for path in self.named:
            yield from ((file, True) for file in files_in(path) if file not in self.listing)

    def remove(self) -> None:
        remove(self._at)
        with suppress(OSError):
            os.unlink(f"{self._at}.lock")


@dataclass
class _Budget:
    bytes: int = COPIED
    entries: int = ENTRIES

    def takes(self, size: int) -> bool:
        """Whether there is room for one more file of that size, which is taken then."""
        if size > self.bytes or not self.entries:
            return False
        self.bytes -= size
        self.entries -= 1
        return True


def _age(entry: os.DirEntry[str]) -> tuple[int, str]:
    with suppress(OSError):
        return entry.stat(follow_symlinks=False).st_ctime_ns, entry.name
    return 0, entry.name


def _inode(number: int) -> int | None:
    """Inode of an open file."""
    try:
        return os.fstat(number).st_ino
    except OSError:
        return None


def _of(found: os.stat_result) -> Stamp:
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _entries(folder: str) -> list[os.DirEntry[str]]:
    """What lies in a folder, by name; nothing where that cannot be read."""
    with suppress(OSError), os.scandir(folder) as found:
        return sorted(found, key=lambda each: each.name)
    return []
