"""Changes of files: what becomes of each where a script runs in a mirror, or in place."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Protocol

from harness.put_back import Log
from harness.starts.caches import cache_folders
from harness.starts.mirror import Mirror

NO_FILES = ("/dev/", "/proc/", "/sys/")
"""Folders without files of a user's."""


class Changes(Protocol):
    """What is told of a change before it is made. Paths are as the script gives them."""

    failed: str | None
    """Why something could not be kept, where that was so: the script is over then."""

    def writes(self, path: str, *, follow: bool = True, empty: bool = False) -> None:
        """A file, folder or link is made, written or removed."""

    def moves(self, source: str, target: str) -> None:
        """Something gets another name."""

    def removes_all(self, path: str) -> None:
        """A folder is removed with all that is in it."""

    def starts(self, program: str) -> None:
        """Another program is started."""

    @property
    def pending(self) -> bool:
        """Whether it wants to know when something else happens than a change."""

    def looks(self) -> None:
        """Something else happens: what was written before lies there now."""


class Kept:
    """Makes what is in the mirror its own, and keeps what lies outside of it."""

    def __init__(self, mirror: Mirror, log: Log, free: Sequence[str] = ()) -> None:
        """``free`` are folders that are nobody's but the command's."""
        self.mirror, self.log = mirror, log
        self.programs: dict[str, None] = {}
        self.failed: str | None = None
        self._free = (*cache_folders(), *(os.path.join(os.path.realpath(each), "") for each in free))

    def writes(self, path: str, *, follow: bool = True, empty: bool = False) -> None:
        at = self.mirror.own(path, follow=follow, empty=empty)
        if not self.mirror.holds(at) and not self._is_free(at):
            self.log.changes(at)
            self.log.written(at)

    def moves(self, source: str, target: str) -> None:
        one, other = (self.mirror.own(each, follow=False) for each in (source, target))
        outside = [not (self.mirror.holds(each) or self._is_free(each)) for each in (one, other)]
        if outside[1]:
            self.log.written(other)
        if all(outside):
            self.log.moves(one, other)
        elif outside[0]:
            self.log.removes_all(one) if os.path.isdir(one) and not os.path.islink(one) else self.log.changes(one)
        elif outside[1]:
            self.log.changes(other)

    def removes_all(self, path: str) -> None:
        self.mirror.own(path)  # of what is outside each file is told of

    def starts(self, program: str) -> None:
        self.programs[os.path.basename(program)] = None

    @property
    def pending(self) -> bool:
        return self.log.pending

    def looks(self) -> None:
        self.log.looks()

    def _is_free(self, path: str) -> bool:
        folder = f"{path}{os.sep}"  # it may be one of these itself
        if folder.startswith((*self._free, *NO_FILES)) or f"{os.sep}__pycache__{os.sep}" in folder:
            return True
        # One that leads to a cache which is made for the first time.
        return not os.path.lexists(path) and any(free.startswith(folder) for free in self._free)


class Noticed:
    """Notices which files that were there are changed: where the script runs in place."""

    def __init__(self) -> None:
        self.changed: dict[str, None] = {}
        """Absolute paths, without links."""
        self.programs: dict[str, None] = {}
        self.failed: str | None = None
        self._free = cache_folders()

    def writes(self, path: str, *, follow: bool = True, empty: bool = False) -> None:
        folder, name = os.path.split(os.path.abspath(path))
        at = os.path.realpath(path) if follow else os.path.join(os.path.realpath(folder), name)
        if os.path.isfile(at) and not at.startswith((*self._free, *NO_FILES)) and "__pycache__" not in at:
            self.changed[at] = None

    def moves(self, source: str, target: str) -> None:
        self.writes(source, follow=False)
        self.writes(target, follow=False)

    def removes_all(self, path: str) -> None:
        """Nothing: of each file it is told."""

    def starts(self, program: str) -> None:
        self.programs[os.path.basename(program)] = None

    pending = False

    def looks(self) -> None:
        """Nothing: files stay as they are."""
