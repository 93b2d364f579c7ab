"""File operations of a script, in their order, and the folder as it lies before each.

What opens, renames, removes or makes something raises an audit event of Python's before it happens. Of what writes
without one (:data:`harness.starts.guard.WRITERS`: PyTorch's archives, safetensors, tokenizers) the call is seen. A
write raises none either: Python's own files get a raw file that tells of each write which reaches the system, a flush
among them; whatever a library writes by itself shows in the folder before the next operation.
"""

from __future__ import annotations

import builtins
import functools
import io
import os
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from harness.starts.guard import WRITERS, WRITES, is_ours, ours, path_given
from harness.starts.journal import Operation
from harness.starts.mirror import Mirror
from harness.starts.moments import Store, Watcher
from harness.starts.orders import Watched
from harness.starts.overlay import Same
from harness.starts.recorder import Recording
from harness.watch.instrument.patches import Original, Patches
from harness.watch.locate import Locator

KINDS = {
    "open": "open",
    "os.rename": "rename",
    "os.remove": "remove",
    "os.rmdir": "rmdir",
    "os.mkdir": "mkdir",
    "os.truncate": "truncate",
    "os.link": "link",
    "os.symlink": "symlink",
}
"""Audit events of a change to a file or folder."""

FOLDERS = {"os.remove": 1, "os.rmdir": 1, "os.mkdir": 2, "os.rename": 2, "os.link": 2, "os.symlink": 2}
"""Audit event to the index of the argument that is the open folder to which a path is relative."""


class Operations:
    """Hears of each operation before it is made, and keeps the folder as it lies then where that is asked for."""

    def __init__(self, recording: Recording, locator: Locator, mirror: Mirror | Same, watched: Watched | None) -> None:
        self._recording, self._locator = recording, locator
        self._mirror, self._folder = mirror, os.path.realpath(os.getcwd())
        self._at = () if watched is None else watched.at
        self._ends_at = () if watched is None else (*watched.at, *watched.ends)
        self._store = None if watched is None else Store(Path(watched.store))
        self._watcher = None if self._store is None else Watcher(mirror, self._store)
        self._count, self._process = 0, os.getpid()
        self._lock = threading.RLock()
        recording.before_step = self._ends

    def install(self, patches: Patches) -> None:
        sys.addaudithook(patches.guard.guarded(self._hears))  # none can be taken away: it ends with the process
        for name, wrap in WRITERS.items():
            patches.when_imported(name, functools.partial(wrap, self, patches))
        for module in (builtins, io):
            patches.wrap(module, "open", self._opened)

    def _hears(self, event: str, args: tuple[Any, ...]) -> None:
        if event not in KINDS or is_ours():
            return
        if event == "open" and not (isinstance(args[2], int) and args[2] & WRITES):
            return
        paths = args[:2] if event in ("os.rename", "os.link", "os.symlink") else args[:1]
        folder = args[FOLDERS[event]] if event in FOLDERS and len(args) > FOLDERS[event] else -1
        found = [None if (path := path_given(each, folder)) is None else os.path.abspath(path) for each in paths]
        if found[-1] is not None:
            kind = "empty" if event == "open" and args[2] & os.O_TRUNC and os.path.exists(found[-1]) else KINDS[event]
            self._before(kind, *(each or "" for each in found))

    def writes(self, path: Any) -> None:
        """A library is about to write a file without an audit event."""
        if (found := path_given(path)) is not None:
            self._before("save", os.path.abspath(found))

    def _opened(self, original: Original, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """A file of Python's that tells of each write which reaches the system."""
        file = original(*args, **kwargs)
        path = path_given(args[0] if args else kwargs.get("file"))
        if self._watcher is None or is_ours() or path is None or not file.writable() or not self._lies_inside(path):
            return file
        newline = args[5] if len(args) > 5 else kwargs.get("newline")
        return telling(file, functools.partial(self._before, "write", os.path.abspath(path)), newline)

    def _lies_inside(self, path: str) -> bool:
        here = os.path.realpath(os.path.dirname(os.path.abspath(path)))
        return self._mirror.holds(here) and "__pycache__" not in here

    def _before(self, kind: str, *paths: str) -> None:
        if is_ours() or os.getpid() != self._process or not self._lies_inside(paths[-1]):
            return  # what a fork writes is seen by the next operation
        with ours(), self._lock:
            self._take(kind, " to ".join(map(self._shown, paths)))

    def _shown(self, path: str) -> str:
        return os.path.relpath(path, self._folder) if path.startswith(self._folder + os.sep) else path

    def _take(self, kind: str, shown: str) -> None:
        at = self._recording.updates
        if self._store is None or self._watcher is None or at not in self._at:
            self._count += 1
            if self._store is None:
                self._recording.writer.write(Operation(self._count, at, kind, shown, self._locator.where()))
            return
        with self._store.alone() as number:
            operation = Operation(number, at, kind, shown, self._locator.where())
            self._store.add(self._watcher.moment(number, at, operation))
            self._recording.writer.write(operation)

    def _ends(self) -> None:
        """Before a step: what was done since the one before it is over."""
        at = self._recording.updates
        if self._store is None or self._watcher is None or at not in self._ends_at:
            return
        with ours(), self._lock, self._store.alone() as number:
            self._store.add(self._watcher.moment(number, at, None))


class _Telling(io.RawIOBase):
    """A raw file that tells before each write."""

    def __init__(self, raw: io.FileIO, tell: Callable[[], None]) -> None:
        super().__init__()
        self._raw, self._tell = raw, tell
        self.name, self.mode = raw.name, raw.mode

    def write(self, data: Any, /) -> int | None:
        self._tell()
        return self._raw.write(data)

    def truncate(self, size: int | None = None, /) -> int:
        self._tell()
        return self._raw.truncate(size)

    def readinto(self, buffer: Any, /) -> int | None:
        return self._raw.readinto(buffer)

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        return self._raw.seek(offset, whence)

    def tell(self) -> int:
        return self._raw.tell()

    def fileno(self) -> int:
        return self._raw.fileno()

    def readable(self) -> bool:
        return self._raw.readable()

    def writable(self) -> bool:
        return self._raw.writable()

    def seekable(self) -> bool:
        return self._raw.seekable()

    def isatty(self) -> bool:
        return self._raw.isatty()

    def close(self) -> None:
        try:
            super().close()
        finally:
            self._raw.close()


def telling(file: Any, tell: Callable[[], None], newline: str | None = None) -> Any:
    """The same open file with a raw file below that calls ``tell`` before each write."""
    if isinstance(file, io.TextIOWrapper):
        encoding, errors, line_buffering, mode = file.encoding, file.errors, file.line_buffering, file.mode
        text = io.TextIOWrapper(telling(file.detach(), tell), encoding, errors, newline, line_buffering)
        text.mode = mode  # type: ignore[misc]
        return text
    if isinstance(file, (io.BufferedWriter, io.BufferedRandom)):
        kind = type(file)
        return kind(_Telling(file.detach(), tell))  # type: ignore[arg-type]
    return _Telling(file, tell) if isinstance(file, io.FileIO) else file
