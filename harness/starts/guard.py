"""The guard: what a script is about to change is made its own first, or kept so that it can be put back.

It hears of changes by Python's audit events, and of those that raise none by wrapping what makes them
(:data:`WRITERS`). What a process that the script starts writes, and a library in another language that is not listed,
it does not hear of: :meth:`harness.starts.isolated.Isolated.close` compares what lies there before and after.
"""

from __future__ import annotations

import errno
import functools
import os
import shutil
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from types import ModuleType
from typing import Any, Protocol
from urllib.parse import unquote

from harness.put_back import CannotKeep, beside_of
from harness.starts.changes import Changes
from harness.watch.guards import Guard, is_the_scripts
from harness.watch.instrument.patches import Original, Patches

WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
"""Flags with one of which a file may be changed."""

STARTS = frozenset(
    ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.startfile", "pty.spawn")
)
"""Events of another program that is started, of whose files nothing is heard."""


class Hears(Protocol):
    """What is told of files that are written without an audit event."""

    def writes(self, path: Any) -> None:
        """A file is about to be written."""


class Stays(Guard):
    """The guard of what must not be off after it has failed once: files and uploads."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(lambda error: None)

    def failed(self, error: Exception) -> None:
        if is_the_scripts(error):
            raise error


_own = threading.local()
"""Whether the guard of this thread is at work: what it does then is nobody's change."""


def is_ours() -> bool:
    """Whether what happens in this thread is the guard's own doing."""
    return getattr(_own, "busy", False)


@contextmanager
def ours() -> Iterator[bool]:
    """What happens meanwhile in this thread is ours; whether it was already."""
    before = is_ours()
    _own.busy = True
    try:
        yield before
    finally:
        _own.busy = before


class FileGuard:
    """Tells of each change before it is made, in this process and in those that it forks."""

    def __init__(self, changes: Changes) -> None:
        self._changes = changes
        self.on = True
        self._events: Mapping[str, Callable[..., None]] = {
            "open": self._open,
            "os.chmod": self._at,
            "os.chown": self._at,
            "os.link": self._link,
            "os.mkdir": self._made,
            "os.remove": self._removed,
            "os.removexattr": self._first,
            "os.rename": self._renamed,
            "os.rmdir": self._folder_removed,
            "os.setxattr": self._first,
            "os.symlink": self._symlink,
            "os.truncate": self._first,
            "os.utime": self._at,
            "shutil.rmtree": self._tree_removed,
            "sqlite3.connect": self._database,
        }

    def install(self, patches: Patches) -> None:
        """Listen until ``patches`` are undone."""

        hears, looks = Stays().guarded(self.hears), Stays().guarded(self._looks)

        def heard(event: str, args: tuple[Any, ...]) -> None:
            if self.on and (event in self._events or event in STARTS):  # of thousands a second
                hears(event, args)
            elif self.on and self._changes.pending:
                looks()

        sys.addaudithook(heard)  # none can be taken away: it is deaf from then on
        patches.at_the_end(self._ends)
        patches = patches.guarded_by(Stays())
        for name in ("rename", "replace"):
            patches.wrap(os, name, _moved_between_file_systems)
        patches.wrap(os, "open", self._opened_below)
        for name in ("mkfifo", "mknod"):
            patches.wrap(os, name, self._node)
        for module, wrap in WRITERS.items():
            patches.when_imported(module, functools.partial(wrap, self, patches))

    def _ends(self) -> None:
        self.on = False

    def _looks(self) -> None:
        with ours() as already:
            if not already:
                self._changes.looks()

    def hears(self, event: str, args: tuple[Any, ...]) -> None:
        with ours() as already:
            if already:
                return
            try:
                if event in STARTS:
                    self._changes.starts(path_given(args[0]) or event)
                else:
                    self._events[event](*args)
            except OSError as error:  # what cannot be kept is not changed either
                self._changes.failed = f"{error.filename or event} could not be kept ({error.strerror})"
                raise CannotKeep(self._changes.failed) from error
            except CannotKeep as error:
                self._changes.failed = str(error)
                raise

    def writes(self, path: Any) -> None:
        """A file is about to be written in a way that raises no audit event.

        Raises:
            CannotKeep: it could not be put back.
        """
        if self.on and path is not None:
            self.hears("os.truncate", (path,))

    def _open(self, path: Any, mode: Any, flags: Any) -> None:
        if isinstance(path, int):
            return  # it was heard of when it was opened
        name = path_given(path)
        if name is not None and isinstance(flags, int) and flags & WRITES:
            self._changes.writes(name, empty=bool(flags & os.O_TRUNC))

    def _opened_below(self, original: Original, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """A file below an open folder, of which the audit event does not tell."""
        folder = kwargs.get("dir_fd")
        flags = args[1] if len(args) > 1 else kwargs.get("flags")
        if isinstance(folder, int) and isinstance(flags, int) and flags & WRITES:
            self.writes(path_given(args[0] if args else kwargs.get("path"), folder))
        return original(*args, **kwargs)

    def _node(self, original: Original, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        if (path := path_given(args[0] if args else kwargs.get("path"), kwargs.get("dir_fd"))) is not None:
            self.hears("os.mkdir", (path,))
        return original(*args, **kwargs)

    def _first(self, path: Any, *_: Any) -> None:
        if (name := path_given(path)) is not None:
            self._changes.writes(name)

    def _at(self, path: Any, *args: Any) -> None:
        if (name := path_given(path, args[-1] if args else -1)) is not None:
            self._changes.writes(name)

    def _made(self, path: Any, mode: Any = None, dir_fd: Any = -1) -> None:
        if (name := path_given(path, dir_fd)) is not None and not os.path.lexists(name):
            self._changes.writes(name, follow=False)

    def _removed(self, path: Any, dir_fd: Any = -1) -> None:
        if (name := path_given(path, dir_fd)) is not None:
            self._changes.writes(name, follow=False)

    def _folder_removed(self, path: Any, dir_fd: Any = -1) -> None:
        if (name := path_given(path, dir_fd)) is not None:
            self._changes.writes(name)  # one that is linked has to be a folder to be removed

    def _tree_removed(self, path: Any, dir_fd: Any = None) -> None:
        if (name := path_given(path, dir_fd)) is not None:
            self._changes.removes_all(name)

    def _renamed(self, source: Any, target: Any, source_fd: Any = -1, target_fd: Any = -1) -> None:
        one, other = path_given(source, source_fd), path_given(target, target_fd)
        if one is not None and other is not None:
            self._changes.moves(one, other)

    def _link(self, source: Any, target: Any, source_fd: Any = -1, target_fd: Any = -1) -> None:
        one, other = path_given(source, source_fd), path_given(target, target_fd)
        if one is not None and other is not None:
            self._changes.writes(one)
            self._changes.writes(other, follow=False)

    def _symlink(self, source: Any, target: Any, dir_fd: Any = -1) -> None:
        if (name := path_given(target, dir_fd)) is not None:
            self._changes.writes(name, follow=False)

    def _database(self, path: Any) -> None:
        name = path_given(path)
        if name is None or name in ("", ":memory:"):
            return
        if name.startswith("file:"):
            name = unquote(name.removeprefix("file:").partition("?")[0])
            name = name.removeprefix("//") if name.startswith("///") else name
        for ending in ("", "-journal", "-wal", "-shm"):
            self._changes.writes(f"{name}{ending}")


LARGE = 2**30
"""Bytes of a file of which it is said that the kernel copies it before it is changed."""


class Started:
    """Hears, in a view of the file system, of programs that are started, and of large files before they are copied."""

    def __init__(self, changes: Changes) -> None:
        self._changes = changes
        self._on = True
        self._told: set[str] = set()

    def install(self, patches: Patches) -> None:
        hears = Stays().guarded(self._hears)

        def heard(event: str, args: tuple[Any, ...]) -> None:
            if (
                self._on
                and not is_ours()
                and (event in STARTS or (event == "open" and isinstance(args[2], int) and args[2] & WRITES))
            ):
                hears(event, args)

        sys.addaudithook(heard)
        patches.at_the_end(self._ends)
        patches.guarded_by(Stays()).wrap(os, "rename", _folder_moved)
        patches.guarded_by(Stays()).wrap(os, "replace", _folder_moved)

    def _ends(self) -> None:
        self._on = False

    def _hears(self, event: str, args: tuple[Any, ...]) -> None:
        if event in STARTS:
            self._changes.starts(path_given(args[0]) or event)
            return
        path = path_given(args[0])
        if path is None or args[2] & os.O_TRUNC or path in self._told:
            return
        with suppress(OSError):
            size = os.stat(path).st_size
            if size >= LARGE:
                self._told.add(path)
                there = os.statvfs(path)
                self._copied(os.path.abspath(path), size, there.f_bavail * there.f_frsize)

    def _copied(self, path: str, size: int, free: int) -> None:
        if free < size:
            self._changes.failed = f"{path} ({size:,} bytes) is copied before it is changed; {free:,} bytes are free"
            raise CannotKeep(self._changes.failed)
        os.write(2, f"harness: {path} ({size / 1e9:.1f} GB) is copied before the script changes it\n".encode())


def _folder_moved(original: Original, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Give a folder another name that was there before: an overlay of a user without rights refuses that."""
    try:
        return original(*args, **kwargs)
    except OSError as error:
        if error.errno != errno.EXDEV or kwargs or len(args) != 2 or not os.path.isdir(args[0]):
            raise
        if os.path.isdir(args[1]):
            os.rmdir(args[1])  # as the system does, which refuses one that is not empty
        shutil.copytree(args[0], args[1], symlinks=True)
        shutil.rmtree(args[0])
        return None


def path_given(path: Any, dir_fd: Any = None) -> str | None:
    """A path as text, absolute where it is relative to an open folder; of a file that is open already, its path."""
    if isinstance(path, int):
        with suppress(OSError):
            name = _folder_of(path)
            return name if os.path.isabs(name) and os.path.lexists(name) else None
        return None
    try:
        name = os.fsdecode(path)
    except TypeError:
        return None
    if not isinstance(dir_fd, int) or dir_fd < 0 or os.path.isabs(name):
        return name
    return os.path.join(_folder_of(dir_fd), name)


def _folder_of(number: int) -> str:
    """The path of a folder that is open."""
    with suppress(OSError):
        return os.readlink(f"/proc/self/fd/{number}")
    import fcntl

    found = fcntl.fcntl(number, getattr(fcntl, "F_GETPATH", 50), b"\0" * 1024)
    return os.fsdecode(found.rstrip(b"\0"))


def _moved_between_file_systems(original: Original, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Give a file another name, also where the mirror lies on another file system than the place where it goes."""
    try:
        return original(*args, **kwargs)
    except OSError as error:
        if error.errno != errno.EXDEV or kwargs or len(args) != 2 or os.path.isdir(args[0]):
            raise
        beside = beside_of(os.fspath(args[1]))
        shutil.copy2(args[0], beside)
        original(beside, args[1])
        os.unlink(args[0])
        return None


def _writes(place: int, keyword: str, *, when: Callable[..., bool] = lambda *args, **kwargs: True) -> Any:
    """A wrapper that tells of the path among the arguments, where it is a path and ``when`` says that it is written."""

    def of(guard: Hears) -> Any:
        def told(original: Original, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
            path = args[place] if len(args) > place else kwargs.get(keyword)
            if isinstance(path, (str, bytes, os.PathLike)) and when(*args, **kwargs):
                guard.writes(path)
            return original(*args, **kwargs)

        return told

    return of


def _wraps(*told: tuple[str, Any]) -> Callable[[Hears, Patches, ModuleType], None]:
    """Wraps functions of a module, given by dotted names."""

    def wrap(guard: Hears, patches: Patches, module: ModuleType) -> None:
        for dotted, of in told:
            owner: Any = module
            *holders, name = dotted.split(".")
            for holder in holders:
                owner = getattr(owner, holder, None)
            if owner is not None:
                patches.wrap(owner, name, of(guard))

    return wrap


def _in_any_mode_but(*reading: str) -> Callable[..., bool]:
    def writes(*args: Any, mode: Any = None, **_: Any) -> bool:
        return (mode or next((each for each in args[2:3] if isinstance(each, str)), reading[0])) not in reading

    return writes


def _below(place: int, keyword: str) -> Any:
    """A wrapper of what writes files of its own names into a folder: those that are there, and the first."""

    def of(guard: Hears) -> Any:
        def told(original: Original, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
            folder = args[place] if len(args) > place else kwargs.get(keyword)
            if isinstance(folder, (str, os.PathLike)):
                for below, _, names in os.walk(os.fspath(folder)):
                    for name in names:
                        guard.writes(os.path.join(below, name))
                guard.writes(os.path.join(folder, "part-0.parquet"))
            return original(*args, **kwargs)

        return told

    return of


def _traces(guard: Hears, patches: Patches, module: ModuleType) -> None:
    for owner in (module.profile, module._KinetoProfile):
        patches.wrap(owner, "export_chrome_trace", _writes(1, "path")(guard))


def _in_folder(guard: Hears) -> Any:
    """A wrapper of what writes the files of a tokenizer's model into a folder."""

    def told(original: Original, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        folder, prefix = (*args[1:3], None, None)[:2]
        folder, prefix = kwargs.get("folder", folder), kwargs.get("prefix", kwargs.get("name", prefix))
        for name in ("vocab.json", "merges.txt", "vocab.txt", "unigram.json"):
            guard.writes(os.path.join(folder, f"{prefix}-{name}" if prefix else name))
        return original(*args, **kwargs)

    return told


def _shares(*args: Any, shared: Any = None, **_: Any) -> bool:
    return bool(shared if shared is not None else next(iter(args[1:2]), False))


WRITERS: Mapping[str, Callable[[Hears, Patches, ModuleType], None]] = {
    "torch._C": _wraps(
        ("PyTorchFileWriter", _writes(0, "name")),
        ("ScriptFunction.save", _writes(1, "filename")),
    ),
    "torch": _wraps(("from_file", _writes(0, "filename", when=_shares))),
    "torch.storage": _wraps(("UntypedStorage.from_file", _writes(1, "filename"))),
    "torch.profiler": _traces,
    "torch.jit": _wraps(
        ("ScriptModule.save", _writes(1, "f")),
        ("RecursiveScriptModule.save", _writes(1, "f")),
    ),
    "safetensors": _wraps(("serialize_file", _writes(1, "filename"))),
    "safetensors.torch": _wraps(("serialize_file", _writes(1, "filename"))),
    "safetensors.numpy": _wraps(("serialize_file", _writes(1, "filename"))),
    "tokenizers": _wraps(("Tokenizer.save", _writes(1, "path")), ("models.Model.save", _in_folder)),
    "pandas": _wraps(
        *((f"DataFrame.{name}", _writes(1, "path")) for name in ("to_parquet", "to_feather", "to_orc")),
    ),
    "pyarrow.ipc": _wraps(("new_file", _writes(0, "sink")), ("new_stream", _writes(0, "sink"))),
    "pyarrow.dataset": _wraps(("write_dataset", _below(1, "base_dir"))),
    "pyarrow.parquet": _wraps(
        ("core.ParquetWriter.__init__", _writes(1, "where")),
        ("write_to_dataset", _below(1, "root_path")),
        ("core.write_to_dataset", _below(1, "root_path")),
    ),
    "pyarrow.feather": _wraps(("write_feather", _writes(1, "dest"))),
    "pyarrow.csv": _wraps(("write_csv", _writes(1, "output_file"))),
    "h5py": _wraps(("File.__init__", _writes(1, "name", when=_in_any_mode_but("r")))),
    "cv2": _wraps(("imwrite", _writes(0, "filename"))),
    "soundfile": _wraps(("write", _writes(0, "file"))),
}
"""What writes files without an audit event, by the module in which it is wrapped: PyTorch's archives (torch.save with a
path, torch.package), memory-mapped storages and traces, TorchScript, safetensors, tokenizers, pandas, pyarrow, h5py,
OpenCV and soundfile."""
