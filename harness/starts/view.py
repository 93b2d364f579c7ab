"""A private view of the file system, kept by the kernel: what a process in it writes, it alone sees.

A view is a mount namespace of its own (``unshare``), with an overlay over each writable file system. Reads come from
the user's files, writes go to an *upper* folder, and whatever the process starts, forks or executes is in the view too.
Nothing has to be put back: the user's files were never written. It works for root, and for other users where the
kernel lets them make user namespaces (5.11 or newer).

This file needs nothing but the standard library. ``python view.py FOLDER -- COMMAND…`` runs a command in the view that
:func:`plan` has described in FOLDER.

Source: mount_namespaces(7), user_namespaces(7), and the kernel's documentation of overlayfs.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import shutil
import stat
import struct
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

NEW_NAMESPACE, NEW_USER = 0x20000, 0x10000000
READ_ONLY, REMOUNT, BIND, RECURSIVE, PRIVATE = 0x1, 0x20, 0x1000, 0x4000, 0x40000
DETACH = 2
CAPABILITIES_VERSION = 0x20080522
PIVOT_ROOT = {"x86_64": 155, "aarch64": 41, "riscv64": 41, "ppc64le": 203, "s390x": 217}
"""Number of the system call, which the C library does not wrap, by machine."""

PLAN, ENTERED = "view.json", "entered"
"""Names of the files, in the folder of a view, that describe it, and that say that it has been entered once."""

AS_THEY_ARE = ("dev", "proc", "run", "sys")
"""Folders of the root that are the machine's: devices, processes, and the sockets of its daemons."""

IN_MEMORY = frozenset("tmpfs ramfs hugetlbfs".split())
"""File systems that are no place for what a script writes."""

NO_UPPER = IN_MEMORY | frozenset("overlay nfs nfs4 cifs smb3 9p virtiofs squashfs iso9660 proc sysfs".split())
"""File systems that cannot keep the upper folder of an overlay, or should not."""

NO_LOWER = frozenset("proc sysfs devpts devtmpfs mqueue cgroup cgroup2 bpf tracefs debugfs securityfs fusectl".split())
"""File systems without files of a user's."""

UNWRITABLE = 0o555

SMALL_FILE = 64 * 2**20
"""Bytes of a file that is copied where a folder cannot be overlaid as a whole."""


class Refused(Exception):
    """This machine does not allow a view, or the folders here cannot be overlaid; the text says why."""


@dataclass(frozen=True)
class Layer:
    """An overlay over one folder."""

    lower: str
    upper: str
    work: str


@dataclass
class Plan:
    """What a view is made of; :meth:`write` keeps it for the processes that enter."""

    root: str
    """Folder that becomes the root."""
    layers: list[Layer] = field(default_factory=list)
    bound: list[str] = field(default_factory=list)
    """Mounts that are there as they are, the outer before the inner."""
    split: list[str] = field(default_factory=list)
    """Folders that have mounts below and are put together from what lies in them."""
    through: list[str] = field(default_factory=list)
    """Folders in which writes reach the user's own: caches, and the command's own scratch folder."""
    made: list[str] = field(default_factory=list)
    """Folders of caches that were made for it; those that stay empty go with it."""
    hidden: list[str] = field(default_factory=list)
    """Absolute patterns of files that are not there; removed when the view is first entered."""
    identity: list[int] = field(default_factory=list)
    """Device and inode of the root: what tells the processes in it from others."""
    put: dict[str, str] = field(default_factory=dict)
    """Files that hold something else, from files with what they hold; put there when the view is first entered."""

    def write(self, folder: Path) -> None:
        beside = folder / f"{PLAN}.new"
        beside.write_text(json.dumps({**vars(self), "layers": [vars(each) for each in self.layers]}))
        os.replace(beside, folder / PLAN)

    @classmethod
    def read(cls, folder: Path) -> Plan:
        found = json.loads((folder / PLAN).read_text())
        return cls(**{**found, "layers": [Layer(**each) for each in found["layers"]]})


def is_below(path: str, folder: str) -> bool:
    """Whether a path is a folder, or lies in it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _like(real: str, copy: str) -> None:
    found = os.stat(real)
    with suppress(OSError):
        os.chown(copy, found.st_uid, found.st_gid)
    os.chmod(copy, stat.S_IMODE(found.st_mode) | stat.S_IRWXU * (not is_privileged()))
    os.utime(copy, ns=(found.st_atime_ns, found.st_mtime_ns))


def is_privileged() -> bool:
    """Whether this process may mount without a user namespace."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("CapEff:"):
            return bool(int(line.split()[1], 16) >> 21 & 1)
    return False


def _is_first_namespace() -> bool:
    """Whether the users here are the machine's own."""
    return Path("/proc/self/uid_map").read_text().split() == ["0", "0", "4294967295"]


_libc = ctypes.CDLL(None, use_errno=True)


def _called(found: int, what: str) -> None:
    if found < 0:
        number = ctypes.get_errno()
        raise Refused(f"{what}: {os.strerror(number)}")


def _mount(source: str, target: str, kind: str, flags: int, options: str = "") -> None:
    given = [os.fsencode(text) for text in (source, target, kind)]
    called = _libc.mount(*given, ctypes.c_ulong(flags), os.fsencode(options) if options else None)
    _called(called, f"mount {kind or 'bind'} {source} on {target} {options}")


def enter(folder: Path) -> None:
    """Go into a view: this process, which must have one thread, and all that it starts.

    Raises:
        Refused: the kernel does not allow it.
    """
    made = Plan.read(folder)
    if _is_in(made):
        return
    with (folder / "lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        entered = (folder / ENTERED).exists()
        if entered and _join(made):
            return
        # The kernel may not have let go of what the last process in it has left.
        for wait in (0.05, 0.2, 1.0, None):
            try:
                _make(made, folder)
                return
            except Refused:
                if wait is None or not entered:
                    raise
                time.sleep(wait)


def _is_in(made: Plan) -> bool:
    """Whether this process is in a view already: its root is the view's then, and its own path leads to another."""
    return bool(made.identity) and _has_root("self", *made.identity)


def _join(made: Plan) -> bool:
    """Go where other processes are; whether there is any."""
    here = os.getcwd()
    for pid in inside(made):
        with suppress(OSError):
            spaces = [os.open(f"/proc/{pid}/ns/{kind}", os.O_RDONLY | os.O_CLOEXEC) for kind in ("user", "mnt")]
            same = os.readlink(f"/proc/{pid}/ns/user") == os.readlink("/proc/self/ns/user")
            for space, kind in zip(spaces[same:], (NEW_USER, NEW_NAMESPACE)[same:], strict=True):
                _called(_libc.setns(space, kind), "setns")
            for space in spaces:
                os.close(space)
            os.chdir(here)
            if not same:
                _give_up_rights()
            return True
    return False


def _make(made: Plan, folder: Path) -> None:
    """A view that no process is in yet."""
    here, privileged = os.getcwd(), is_privileged()
    _unshare()
    _mount("none", "/", "", RECURSIVE | PRIVATE)
    _mount(made.root, made.root, "", BIND)
    _mount("none", made.root, "", PRIVATE)
    _furnish(made)
    _pivot(made.root)
    for path in (here, os.path.expanduser("~"), "/"):
        with suppress(OSError):
            os.chdir(path)
            break
    _first_time(made, folder)
    if not privileged:
        _give_up_rights()


def _give_up_rights() -> None:
    """Have no more rights than the user has outside: a namespace of one's own gives all of them in it."""
    header = ctypes.create_string_buffer(struct.pack("Ii", CAPABILITIES_VERSION, 0))
    _called(_libc.capset(header, ctypes.create_string_buffer(24)), "capset")


def _unshare() -> None:
    if is_privileged():
        _called(_libc.unshare(NEW_NAMESPACE), "unshare (mount namespace)")
        return
    user, group = os.geteuid(), os.getegid()
    _called(_libc.unshare(NEW_USER | NEW_NAMESPACE), "unshare (user and mount namespace)")
    try:
        for file, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
            Path("/proc/self", file).write_text(text)
    except OSError as error:  # as AppArmor does on Ubuntu: a user namespace, without any rights in it
        raise Refused(f"user namespace: {error.strerror}") from error


def _furnish(made: Plan) -> None:
    """Mount all that is to be seen below the folder that becomes the root."""
    for entry in os.scandir("/"):
        _stand_in(made, entry, covered=entry.name not in AS_THEY_ARE)
    for name in AS_THEY_ARE:
        if os.path.isdir(f"/{name}"):
            _mount(f"/{name}", f"{made.root}/{name}", "", BIND | RECURSIVE)
    layers = {layer.lower: layer for layer in made.layers}
    for point in sorted({*layers, *made.bound, *made.split}, key=lambda path: path.count("/")):
        there = made.root + point
        if point in layers:
            _overlay(layers[point], there)
        elif point not in made.split:
            _mount(point, there, "", BIND | RECURSIVE)
        else:
            for entry in os.scandir(point):
                _stand_in(made, entry)
            if not os.access(point, os.W_OK):
                os.chmod(there, UNWRITABLE)
    for path in made.through:
        _mount(path, made.root + path, "", BIND | RECURSIVE)
    if not os.access("/", os.W_OK):
        os.chmod(made.root, UNWRITABLE)


def _overlay(layer: Layer, there: str) -> None:
    given = {"lowerdir": layer.lower, "upperdir": layer.upper, "workdir": layer.work}
    options = ["redirect_dir=on" if is_privileged() and _is_first_namespace() else "userxattr"]
    options += [f"{name}={_escaped(path)}" for name, path in given.items()]
    try:
        _mount("overlay", there, "overlay", 0, ",".join(options))
    except Refused:
        if os.access(layer.lower, os.W_OK) and not os.path.ismount(layer.lower):
            raise
        # A file system that cannot be below an overlay, as some network ones: it can be read.
        _mount(layer.lower, there, "", BIND)
        _mount("none", there, "", BIND | REMOUNT | READ_ONLY)


def _escaped(path: str) -> str:
    return path.replace("\\", "\\\\").replace(":", "\\:").replace(",", "\\,")


def _stand_in(made: Plan, entry: os.DirEntry[str], *, covered: bool = True) -> None:
    """Something to mount over: a folder, or, of what is no folder, the thing itself."""
    there = made.root + entry.path
    if os.path.lexists(there):
        return  # this view has been entered before
    if entry.is_symlink():
        os.symlink(os.readlink(entry.path), there)
    elif entry.is_dir():
        os.mkdir(there)
        _like(entry.path, there)
    elif entry.is_file():
        if entry.stat().st_size <= SMALL_FILE and os.access(entry.path, os.R_OK):
            shutil.copy2(entry.path, there)
        else:
            Path(there).touch()
            _mount(entry.path, there, "", BIND)
            _mount("none", there, "", BIND | REMOUNT | READ_ONLY)


def _pivot(root: str) -> None:
    os.chdir(root)
    number = PIVOT_ROOT.get(os.uname().machine)
    if number is None:
        raise Refused(f"pivot_root is not known for {os.uname().machine}")
    _called(_libc.syscall(number, b".", b"."), "pivot_root")
    _called(_libc.umount2(b".", DETACH), "umount")


def _first_time(made: Plan, folder: Path) -> None:
    """Hide and put what this view begins with."""
    done = folder / ENTERED
    if done.exists():
        return
    import glob

    for pattern in made.hidden:
        for path in glob.glob(pattern, include_hidden=True) if sys.version_info >= (3, 11) else glob.glob(pattern):
            shutil.rmtree(path) if os.path.isdir(path) and not os.path.islink(path) else os.unlink(path)
    for path, holds in made.put.items():
        os.makedirs(os.path.dirname(path), exist_ok=True)
        shutil.copyfile(holds, path)
    done.touch()


def inside(made: Plan) -> Iterator[int]:
    """The processes in a view, but this one.

    A process is known by its root. The number of a namespace becomes that of another as soon as nothing is in it.
    """
    with suppress(OSError):
        found = os.stat(made.root)
        for entry in os.listdir("/proc"):
            if entry.isdigit() and int(entry) != os.getpid() and _has_root(entry, found.st_dev, found.st_ino):
                yield int(entry)


def _has_root(pid: str, device: int, inode: int) -> bool:
    with suppress(OSError):
        found = os.stat(f"/proc/{pid}/root")
        return (found.st_dev, found.st_ino) == (device, inode)
    return False


def remove(made: Plan) -> None:
    """Remove what was written in a view, once nothing runs in it any more."""
    own = [os.path.dirname(made.root), *(os.path.dirname(os.path.dirname(layer.upper)) for layer in made.layers)]
    for at in dict.fromkeys(own):
        _remove(at)
        with suppress(OSError):  # that of another command lies beside
            os.rmdir(os.path.dirname(at))
    remove_empty(made.made)


def remove_empty(folders: Iterable[str]) -> None:
    for folder in sorted(folders, key=len, reverse=True):
        with suppress(OSError):  # something lies in it now
            os.rmdir(folder)


def _remove(folder: str) -> None:
    for _ in range(2):
        shutil.rmtree(folder, onerror=_made_writable)
        if not os.path.lexists(folder):
            return


def _made_writable(function: Any, path: str, about: Any) -> None:
    """A folder without rights, as the kernel makes them for its own use, or as the script did."""
    for there in (os.path.dirname(path), path):
        with suppress(OSError):
            os.chmod(there, stat.S_IRWXU)
    with suppress(OSError):
        os.unlink(path) if not os.path.isdir(path) or os.path.islink(path) else os.rmdir(path)


def refused_because() -> str | None:
    """Why no view can be made here, as far as that is known without trying; None where it may be."""
    if sys.platform != "linux":
        return "a private view of the file system needs Linux"
    if os.uname().machine not in PIVOT_ROOT:
        return f"pivot_root is not known for {os.uname().machine}"
    with suppress(OSError):
        if "\toverlay\n" not in Path("/proc/filesystems").read_text() and not os.path.isdir("/sys/module/overlay"):
            return "the kernel has no overlayfs"
    return None


def main() -> None:
    folder, _, *command = sys.argv[1:]
    try:
        enter(Path(folder))
    except (Refused, OSError) as error:
        sys.exit(f"harness: no private view of the file system: {error}")
    try:
        os.execvp(command[0], command)  # noqa: S606 - what it is for
    except OSError as error:
        sys.exit(f"harness: {command[0]} cannot be started ({error.strerror})")


if __name__ == "__main__":
    main()
