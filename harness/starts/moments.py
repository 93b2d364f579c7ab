"""A folder as it lies before each file operation of a script, and as a kill within one leaves it."""

from __future__ import annotations

import ctypes
import fcntl
import hashlib
import io
import json
import os
import shutil
import stat
import struct
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import BinaryIO

from harness.digests import joined
from harness.files import write_atomically
from harness.put_back import remove
from harness.starts.journal import Operation
from harness.starts.mirror import NOT_DATA, SMALL, Mirror
from harness.starts.overlay import Same

TICK = 50_000_000
"""Nanoseconds in which two writes may leave the same time of change."""

REPLACES = ("empty", "save")
"""Kinds of operations that empty a file before they write it."""

Entry = tuple[str, ...]
"""What lies at a path: ("file", digest, mode, time), ("folder", mode) or ("link", target)."""


@dataclass(frozen=True)
class Moment:
    """The folder as it lies before an operation, within it, or after the last, as differences from the beginning."""

    number: int
    """Number of the operation, over all ranks."""
    at: int
    """Updates made by then."""
    operation: Operation | None
    """Operation that is about to be made; None after the last."""
    put: dict[str, Entry] = field(default_factory=dict)
    """Files that differ from the beginning, by their paths in the mirror, from its root."""
    gone: tuple[str, ...] = ()
    moved: dict[str, str] = field(default_factory=dict)
    """Files that got another name since the moment before, by the new one: nobody saw them half written under it."""
    torn: str | None = None
    """The file that is half written, or opened and empty, where the kill is within the operation."""

    def __str__(self) -> str:
        if self.operation is None:
            return "after the last file operation"
        if self.torn is None:
            return f"before {self.operation}"
        of = "" if Path(self.torn).name in self.operation.path else f" ({Path(self.torn).name})"
        return f"within {self.operation}{of}"

    @property
    def until(self) -> float:
        """Number up to which a journal is read that ends with this kill, as :meth:`Journal.read` takes it."""
        return self.number + (0.5 if self.torn else 0.0)

    @cached_property
    def holds(self) -> str:
        """A digest of all that lies there, equal where the bytes are; times are not among it."""
        return joined([*(f"{path} {entry[:3]}" for path, entry in sorted(self.put.items())), *sorted(self.gone)])


class Store:
    """Moments of a folder on the disk, each file once by what it holds."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._files, self._moments = root / "files", root / "moments"
        for each in (self._files, self._moments):
            each.mkdir(parents=True, exist_ok=True)

    @contextmanager
    def alone(self) -> Iterator[int]:
        """No other rank takes a moment meanwhile; the number of the next one."""
        with (self.root / "lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield len(os.listdir(self._moments)) + 1

    def add(self, moment: Moment) -> None:
        write_atomically(self._moments / f"{moment.number:06}.json", json.dumps(asdict(moment)))

    def moments(self) -> list[Moment]:
        """All that were taken, in their order."""
        found = []
        for file in sorted(self._moments.glob("*.json")):
            read = json.loads(file.read_text(encoding="utf-8"))
            operation = Operation(**read["operation"]) if read["operation"] else None
            put = {path: tuple(entry) for path, entry in read["put"].items()}
            found.append(Moment(read["number"], read["at"], operation, put, tuple(read["gone"]), read["moved"]))
        return found

    def file(self, digest: str) -> Path:
        return self._files / digest

    def keep(self, path: str) -> str:
        """Keep what a file holds; its digest."""
        with open(path, "rb") as file:
            return self.keep_bytes(file)

    def keep_bytes(self, file: BinaryIO) -> str:
        beside = self._files / f".{os.getpid()}-{threading.get_ident()}"
        found = hashlib.blake2b(digest_size=16)
        with beside.open("wb") as copy:
            while block := file.read(2**20):
                found.update(block)
                copy.write(block)
        os.chmod(beside, 0o444)
        os.replace(beside, self.file(found.hexdigest()))
        return found.hexdigest()

    def holds(self, text: str) -> bool:
        """Whether some file has this text in it."""
        wanted = text.encode()
        for file in self._files.iterdir():
            rest = b""
            with file.open("rb") as read:
                while block := read.read(2**22):
                    if wanted in rest + block:
                        return True
                    rest = block[-len(wanted) :]
        return False


class Watcher:
    """Takes the moments of a mirror, or of a view, as differences from how it lay when this was made."""

    def __init__(self, mirror: Mirror | Same, store: Store) -> None:
        self.mirror, self.store = mirror, store
        self._known: dict[str, tuple[tuple[int, int, int], str]] = {}
        self._renamed = Renamed()
        self._first = {path: self._look(path, found, keep=False) for path, found in self._entries()}

    def moment(self, number: int, at: int, operation: Operation | None) -> Moment:
        now = {path: self._look(path, found, keep=True) for path, found in self._entries()}
        put = {path: entry for path, entry in now.items() if entry != self._first.get(path)}
        for path, entry in put.items():
            if entry[0] == "file" and not entry[1]:  # it holds what it held, and has another mode
                put[path] = (entry[0], self.store.keep(self.mirror.of(path)), *entry[2:])
        gone = tuple(path for path in self._first if path not in now)
        moved = {self._inside(new): self._inside(old) for old, new in self._renamed.read()}
        return Moment(number, at, operation, put, gone, moved)

    def _inside(self, path: str) -> str:
        return path.removeprefix(self.mirror.of(""))

    def _entries(self) -> Iterator[tuple[str, os.stat_result]]:
        root = self.mirror.of("")
        for below, folders, files in (found for each in self.mirror.roots for found in os.walk(each)):
            folders[:] = [name for name in folders if not self._is_left_out(below, name)]
            self._renamed.watch(below)
            for name in (*folders, *files):
                here = os.path.join(below, name)
                with suppress(FileNotFoundError):
                    yield here.removeprefix(root), os.lstat(here)

    def _is_left_out(self, below: str, name: str) -> bool:
        return name == "__pycache__" or name in NOT_DATA or os.path.join(below, name) in self.mirror.left_out

    def _look(self, path: str, found: os.stat_result, *, keep: bool) -> Entry:
        here = self.mirror.of(path)
        mode = str(stat.S_IMODE(found.st_mode))
        if stat.S_ISLNK(found.st_mode):
            return ("link", os.readlink(here))
        if stat.S_ISDIR(found.st_mode):
            return ("folder", mode)
        stamp = found.st_ino, found.st_size, found.st_mtime_ns
        known = self._known.get(path)
        sure = time.time_ns() - found.st_mtime_ns > TICK
        if known is not None and known[0] == stamp and (sure or not known[1]):
            digest = known[1]
        else:
            digest = self.store.keep(here) if keep and stat.S_ISREG(found.st_mode) else ""
        self._known[path] = stamp, digest
        return ("file", digest, mode, str(found.st_mtime_ns))


class Renamed:
    """Renames in folders, also those that a library makes by itself, as inotify tells of them; none but on Linux."""

    MOVED_FROM, MOVED_TO, NON_BLOCKING = 0x40, 0x80, 0o4000
    HEAD = struct.Struct("iIII")

    def __init__(self) -> None:
        self._watched: dict[int, str] = {}
        self._number = -1
        if sys.platform == "linux":
            self._libc = ctypes.CDLL(None, use_errno=True)
            self._number = self._libc.inotify_init1(self.NON_BLOCKING)

    def watch(self, folder: str) -> None:
        if self._number >= 0 and folder not in self._watched.values():
            found = self._libc.inotify_add_watch(self._number, os.fsencode(folder), self.MOVED_FROM | self.MOVED_TO)
            if found >= 0:
                self._watched[found] = folder

    def read(self) -> list[tuple[str, str]]:
        """The old and the new path of what was renamed since the last time."""
        found, left = list[tuple[str, str]](), dict[int, str]()
        while self._number >= 0:
            try:
                told = os.read(self._number, 2**16)
            except BlockingIOError:
                break
            while told:
                watch, mask, cookie, length = self.HEAD.unpack_from(told)
                name = os.fsdecode(told[self.HEAD.size : self.HEAD.size + length].rstrip(b"\0"))
                told = told[self.HEAD.size + length :]
                path = os.path.join(self._watched.get(watch, ""), name)
                if mask & self.MOVED_FROM:
                    left[cookie] = path
                elif cookie in left:
                    found.append((left.pop(cookie), path))
        return found


def build(moment: Moment, store: Store, mirror: Mirror | Same) -> None:
    """Have a mirror that was just made lie as at a moment."""
    for path in sorted(moment.gone, reverse=True):
        remove(mirror.of(path))
    times = list[tuple[str, int]]()
    for path in sorted(moment.put):
        entry, here = moment.put[path], mirror.own(mirror.of(path), follow=False)
        if os.path.lexists(here) and not (entry[0] == "folder" and os.path.isdir(here) and not os.path.islink(here)):
            remove(here)
        if entry[0] == "folder":
            os.makedirs(here, exist_ok=True)
            os.chmod(here, int(entry[1]) | stat.S_IRWXU)
        elif entry[0] == "link":
            os.symlink(entry[1], here)
        else:
            _build_file(store.file(entry[1]), here, int(entry[2]))
            times.append((here, int(entry[3])))
    for here, changed in times:
        if not os.path.islink(here):
            os.utime(here, ns=(changed, changed))
    mirror.copied = dict(mirror.stamps())


def _build_file(kept: Path, here: str, mode: int) -> None:
    if kept.stat().st_size > SMALL:
        os.symlink(kept, here)  # the guard makes a copy before it is changed, as of any large file
        return
    shutil.copyfile(kept, here)
    os.chmod(here, mode)


def within(before: Moment, after: Moment, store: Store) -> Iterator[Moment]:
    """The moments within the operation between two: each file that it wrote empty where it replaces what was there,
    and half written."""
    known = {entry[1] for entry in before.put.values() if entry[0] == "file"}
    for path, entry in after.put.items():
        if entry[0] != "file" or entry[1] in known:
            continue  # of a file that got another name nothing is written
        path = after.moved.get(path, path)
        old, new = _held(before, path, store), store.file(entry[1]).read_bytes()
        appended = old is not None and new.startswith(old)
        kept = len(old or b"") if appended else 0
        replaced = old is None or before.operation is None or before.operation.kind in REPLACES
        parts = [new[: kept + (len(new) - kept) // 2]]
        if not appended and not replaced:
            parts = [parts[0] + (old or b"")[len(parts[0]) :]]
        elif not appended:
            parts.insert(0, b"")
        for part in parts:
            put = {**before.put, path: (entry[0], store.keep_bytes(io.BytesIO(part)), *entry[2:])}
            gone = tuple(each for each in before.gone if each != path)
            yield replace(before, put=put, gone=gone, torn=path)


def _held(moment: Moment, path: str, store: Store) -> bytes | None:
    """What a file held then; None where there was none."""
    if path in moment.put:
        entry = moment.put[path]
        return store.file(entry[1]).read_bytes() if entry[0] == "file" else None
    real = Path(path)  # it is as it lies in the user's folder
    return real.read_bytes() if path not in moment.gone and real.is_file() else None


def main(told: str, store: str) -> None:
    """Build a moment where this process is: in a view that nothing has run in yet."""
    found = json.loads(Path(told).read_text())
    put = {path: tuple(entry) for path, entry in found["put"].items()}
    moment = Moment(found["number"], found["at"], None, put, tuple(found["gone"]), found["moved"], found["torn"])
    build(moment, Store(Path(store)), Same(tuple(found["folders"])))


if __name__ == "__main__":
    main(*sys.argv[1:])
