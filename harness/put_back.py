"""Files that are put back: what a script changes outside of the directory that is its own, kept before it does.

A log is a folder with a line of JSON for each change, in order, and copies of what was there. Each is on the disk
before the change is made, so that another process can undo all of them where this one is killed. That is why this file,
as :mod:`harness.processes`, needs nothing but the standard library. What somebody else has changed since the script did
is newer work, and stays.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import stat
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

LOG = "changes.jsonl"

MOST_OPEN, PAUSE = 32, 0.05
"""Files of which it is followed how the script leaves them, and seconds between two looks."""

CLONE = 0x40049409
"""FICLONE of Linux: a copy that shares its blocks, where the file system can."""


SLACK = 0.05
"""Seconds by which the time of a file and the system's clock may differ."""

Stamp = tuple[int, int, int]
"""What tells one content of a file from another: its inode, its size, and the time of its change."""

WORTH_CLONING = 2**20
"""Bytes of a file from which on that is tried."""


class CannotKeep(BaseException):
    """What a script is about to change cannot be kept, so that it could not be put back.

    No ``Exception``: a script that goes on after any of those must end here.
    """


class Log:
    """What was outside, kept before it is changed; of each path once, until something is moved."""

    def __init__(self, folder: Path) -> None:
        """``folder`` is made with the first change."""
        self.folder = folder
        self._seen: set[str | tuple[str, str]] = set()
        self._made: set[str] = set()
        """The files that the script has made, by the names that they have now."""
        self._number = 0
        self._lock = threading.RLock()
        self._written: dict[str, None] = {}
        """Files that were written last, of which it is not known yet how the script leaves them."""
        self._left: set[str] = set()
        self._process, self._looked = os.getpid(), 0.0

    def written(self, path: str) -> None:
        """A file is about to be written: what becomes of it is the script's doing."""
        with self._lock:
            self._written[path] = None
            if path in self._left or os.getpid() != self._process:
                self._says("left", path, stamp=None)
                self._left.discard(path)

    @property
    def pending(self) -> bool:
        """Whether :meth:`looks` would find something."""
        return bool(self._written) and time.monotonic() > self._looked + PAUSE

    def looks(self) -> None:
        """Write down how the script has left what it wrote last, now that it does something else.

        If somebody else writes such a file after that, it is newer work, and stays. One that is open still, or mapped,
        is the script's.
        """
        with self._lock:
            if os.getpid() != self._process:
                self._written.clear()
                return
            self._looked = time.monotonic()
            held = _held()
            for path in list(self._written):
                found = stamp_of(path)
                if held is None or (found is not None and found[0] in held):
                    continue
                del self._written[path]
                if found is not None:
                    self._left.add(path)
                    self._says("left", path, stamp=found)
            for path in list(self._written)[:-MOST_OPEN]:
                del self._written[path]

    def changes(self, path: str) -> None:
        """The file, link or folder of that name is about to be written, made or removed.

        Raises:
            CannotKeep: there is no room for a copy of it, or it cannot be read.
        """
        with self._lock:
            if path in self._seen:
                return
            try:
                found = os.lstat(path)
            except OSError:
                missing = _first_missing(path)
                if missing not in self._seen:
                    self._times(missing)
                    self._says("made", missing)
                self._seen.update((missing, path))
                self._made.add(path)
                return
            self._times(path)
            if stat.S_ISREG(found.st_mode):
                kept = self._keeps(path, found.st_size)
                same = self._holds(path, f"{kept}.same") if found.st_nlink > 1 else None
                self._says("file", path, kept=kept, inode=found.st_ino, same=same)
            elif stat.S_ISLNK(found.st_mode):
                self._says("link", path, target=os.readlink(path), times=_times_of(found))
            elif stat.S_ISDIR(found.st_mode):
                self._says("folder", path, mode=stat.S_IMODE(found.st_mode), times=_times_of(found))
            self._seen.add(path)

    def moves(self, source: str, target: str) -> None:
        """Something is about to get another name."""
        with self._lock:
            self.changes(target)
            if os.path.lexists(source):
                self._times(source)
                self._says("moved", source, target=target)
            if source in self._made and os.path.isfile(source) and not os.path.islink(source):
                # A file of the script's own, as each save that replaces the one before: what was there is kept already.
                self._made.discard(source)
                self._seen.discard(source)
                self._made.add(target)
            else:
                self._seen.clear()  # names are others' from now on
                self._made.clear()

    def removes_all(self, path: str) -> None:
        """A folder with all that is in it is about to leave the places that can be put back."""
        for below, folders, files in os.walk(path):
            for name in (*files, *folders):
                self.changes(os.path.join(below, name))
        self.changes(path)

    def _times(self, path: str) -> None:
        parent = os.path.dirname(path)
        with suppress(OSError):
            if parent not in self._seen and ("times", parent) not in self._seen:
                found = os.stat(parent)
                self._says("times", parent, times=_times_of(found))
                self._seen.add(("times", parent))

    def _keeps(self, path: str, size: int) -> str:
        self._number += 1
        name = f"{os.getpid()}-{self._number}"
        kept = self.folder / name
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            if shutil.disk_usage(self.folder).free < size:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            copy_file(path, str(kept))
            with kept.open("rb") as file:
                os.fsync(file.fileno())
        except OSError as error:
            kept.unlink(missing_ok=True)
            raise CannotKeep(
                f"the script is about to change {path} ({size:,} bytes), and no copy to restore it from "
                f"could be kept in {self.folder} ({error.strerror})"
            ) from error
        return name

    def _holds(self, path: str, name: str) -> str | None:
        """Give a file that has several names one more, by which it is found when the others lead elsewhere."""
        try:
            os.link(path, self.folder / name)
        except OSError:  # another file system, or one without such names
            return None
        return name

    def _says(self, kind: str, path: str, **more: Any) -> None:
        line = json.dumps({"kind": kind, "path": path, **more}).encode() + b"\n"
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        file = os.open(self.folder / LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            os.write(file, line)
            os.fsync(file)
        finally:
            os.close(file)


def _held() -> set[int] | None:
    """Inodes of the files that this process has open or mapped; None where that cannot be known."""
    found = set[int]()
    try:
        for number in os.listdir("/proc/self/fd"):
            with suppress(OSError):
                found.add(os.stat(f"/proc/self/fd/{number}").st_ino)
        with open("/proc/self/maps") as maps:
            found |= {int(line.split(None, 5)[4]) for line in maps}
    except OSError:
        return None
    return found


def _times_of(found: os.stat_result) -> list[int]:
    return [found.st_atime_ns, found.st_mtime_ns]


def copy_file(source: str, target: str) -> None:
    """Copy a file with its times and its mode, sharing its blocks where the file system can."""
    if os.path.getsize(source) < WORTH_CLONING or not cloned(source, target):
        shutil.copyfile(source, target)
    shutil.copystat(source, target)


def cloned(source: str, target: str) -> bool:
    """Copy a file without copying its blocks; whether the file system could do so."""
    try:
        import fcntl

        with open(source, "rb") as one, open(target, "wb") as other:
            fcntl.ioctl(other.fileno(), CLONE, one.fileno())
    except (ImportError, OSError):
        return False
    return True


def changes_in(folder: Path) -> list[dict[str, Any]]:
    """The lines of a log, the oldest first; one that a kill has cut is of a change that was not made."""
    found = []
    with suppress(FileNotFoundError):
        for line in (folder / LOG).read_bytes().split(b"\n")[:-1]:
            with suppress(ValueError):
                found.append(json.loads(line))
    return found


def stamp_of(path: str) -> Stamp | None:
    """What tells the content of a file from another; None where there is no file."""
    with suppress(OSError):
        found = os.lstat(path)
        if stat.S_ISREG(found.st_mode):
            return found.st_ino, found.st_size, found.st_mtime_ns
    return None


def newer(folder: Path, ended: float | None = None) -> list[str]:
    """The files of a log that are not as the script has left them: something else has written them since.

    Args:
        ended: when the script's process had ended, in seconds since 1970; what was written after that is newer, too.
    """
    changes = changes_in(folder)
    left: dict[str, Sequence[int]] = {each["path"]: each["stamp"] or () for each in changes if each["kind"] == "left"}
    found = dict[str, None]()
    for change in changes:
        path = change.get("target") if change["kind"] == "moved" else change["path"]
        now = stamp_of(str(path)) if change["kind"] in ("made", "file", "moved") else None
        if now is None:
            continue
        known = tuple(left.get(str(path), ()))
        others = bool(known) and known != now and now[2] > known[2]
        if others or (ended is not None and now[2] / 1e9 > ended + SLACK):
            found[str(path)] = None
    return list(found)


def put_back(folder: Path, ended: float | None = None) -> list[str]:
    """Undo what a log has, the latest first, and remove it; what could not be undone, with why.

    Each change is undone once: where some cannot be, the log has these alone from then on, and what they need. What is
    :func:`newer` stays.
    """
    others, failed, left = set(newer(folder, ended)), [], []
    for change in reversed(changes_in(folder)):
        if change["kind"] == "left" or change["path"] in others or change.get("target") in others:
            continue
        try:
            _undo(folder, **change)
        except OSError as error:
            failed.append(f"{change['path']} ({error.strerror})")
            left.append(change)
    if not failed:
        shutil.rmtree(folder, ignore_errors=True)
    else:
        beside = folder / f".{LOG}"
        beside.write_bytes(b"".join(json.dumps(change).encode() + b"\n" for change in reversed(left)))
        os.replace(beside, folder / LOG)
    return failed


def put_back_all(folder: Path, ended: float | None = None) -> list[str]:
    """:func:`put_back` of each log below a folder, the newest first; the folder goes where all could be undone."""
    if not folder.is_dir():
        return []
    if (folder / LOG).exists():
        return put_back(folder, ended)
    logs = sorted((each for each in folder.iterdir() if each.is_dir()), key=lambda each: each.stat().st_mtime_ns)
    failed = [each for log in reversed(logs) for each in put_back_all(log, ended)]
    if not failed:
        shutil.rmtree(folder, ignore_errors=True)
    return failed


def _undo(folder: Path, kind: str, path: str, **was: Any) -> None:
    if kind == "made":
        remove(path)
    elif kind == "file":
        same = was["same"] and str(folder / was["same"])
        if same is not None and not (os.path.exists(path) and os.path.samefile(same, path)):
            remove(path)
            os.link(same, path)
        _restore(str(folder / was["kept"]), path, was["inode"])
    elif kind == "link":
        if not os.path.islink(path) or os.readlink(path) != was["target"]:
            remove(path)
            os.symlink(was["target"], path)
        os.utime(path, ns=tuple(was["times"]), follow_symlinks=False)
    elif kind == "folder":
        if not os.path.isdir(path) or os.path.islink(path):
            remove(path)
            os.makedirs(path)
        os.chmod(path, was["mode"])
        os.utime(path, ns=tuple(was["times"]))
    elif kind == "moved":
        if os.path.lexists(was["target"]) and not os.path.lexists(path):  # where it is, nothing was moved
            os.rename(was["target"], path)
    elif kind == "times":
        with suppress(FileNotFoundError, NotADirectoryError):
            os.utime(path, ns=tuple(was["times"]))


def _restore(kept: str, path: str, inode: int) -> None:
    """What a file held, in the file itself where it is the same one: other names of it see it too."""
    with suppress(OSError):
        found = os.lstat(path)
        if found.st_ino == inode and stat.S_ISREG(found.st_mode):  # and no link that has got its number
            os.chmod(path, stat.S_IMODE(found.st_mode) | stat.S_IWUSR)
            shutil.copyfile(kept, path)
            _without_new_attributes(kept, path)
            shutil.copystat(kept, path)
            return
    os.makedirs(os.path.dirname(path), exist_ok=True)
    beside = beside_of(path)
    copy_file(kept, beside)
    if os.path.isdir(path) and not os.path.islink(path):
        remove(path)
    os.replace(beside, path)


def _without_new_attributes(kept: str, path: str) -> None:
    """Remove the extended attributes that a file has got; those that it had are copied with its times."""
    if hasattr(os, "listxattr"):
        with suppress(OSError):
            for name in set(os.listxattr(path)) - set(os.listxattr(kept)):
                os.removexattr(path, name)


def beside_of(path: str) -> str:
    """A path for what is to take a file's place: its own name may be as long as one can be."""
    return os.path.join(os.path.dirname(path), f".harness-{os.getpid()}-{os.path.basename(path)[-16:]}")


def remove(path: str) -> None:
    """Remove a file, a link or a folder with all that is in it, also one that nobody may write to."""
    if os.path.islink(path) or not os.path.isdir(path):
        with suppress(FileNotFoundError, NotADirectoryError):
            os.unlink(path)
        return
    for below, folders, _ in os.walk(path):
        for name in (".", *folders):
            with suppress(OSError):
                each = os.path.join(below, name)
                if not os.path.islink(each):
                    os.chmod(each, stat.S_IMODE(os.lstat(each).st_mode) | stat.S_IRWXU)
    shutil.rmtree(path)


def _first_missing(path: str) -> str:
    """The outermost of a path's folders that is not there, or the path itself."""
    while not os.path.lexists(parent := os.path.dirname(path)) and parent != path:
        path = parent
    return path


def cache_folder() -> Path:
    """The harness's own folder among the user's caches: on a disk, also where temporary files are kept in memory."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(cache, "full-training-harness")


def logs_folder() -> Path:
    """Where the logs of all commands lie."""
    return cache_folder() / "put-back"


def log_name(name: str) -> str:
    """The name of a log of this process; it has the machine's, since several may share the user's folder of caches."""
    return f"{os.getpid()}@{os.uname().nodename}-{name}"


def left_behind(folder: Path) -> Iterator[Path]:
    """The logs in a folder whose process has ended, on this machine, without putting anything back."""
    with suppress(OSError):
        for log in sorted(folder.iterdir()):
            pid, _, rest = log.name.partition("@")
            if pid.isdigit() and rest.startswith(f"{os.uname().nodename}-") and not _runs(int(pid)):
                yield log


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
