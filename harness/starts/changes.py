"""Changes of files: what becomes of each where a script runs in a mirror, or in place."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from typing import Protocol

from harness.put_back import Log
from harness.starts.mirror import Mirror

NO_FILES = ("/dev/", "/proc/", "/sys/")
"""Folders without files of a user's."""

LASTING = ("hub", "datasets", "modules", "xet")
"""Folders below Hugging Face's that are made where they are missing, so that what a script downloads is there again."""

OTHERS = (
    "TRANSFORMERS_CACHE TORCH_EXTENSIONS_DIR NUMBA_CACHE_DIR MPLCONFIGDIR NLTK_DATA WANDB_CACHE_DIR PYTHONPYCACHEPREFIX"
).split()
"""Variables that each name one more folder of a cache."""


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


class Kept:
    """Makes what is in the mirror its own, and keeps what lies outside of it."""

    def __init__(self, mirror: Mirror, log: Log, free: Sequence[str] = ()) -> None:
        """``free`` are folders that are nobody's but the command's."""
        self.mirror, self.log = mirror, log
        self.programs: dict[str, None] = {}
        self.failed: str | None = None
        self._free = (*caches(), *(os.path.join(os.path.realpath(each), "") for each in free))

    def writes(self, path: str, *, follow: bool = True, empty: bool = False) -> None:
        at = self.mirror.own(path, follow=follow, empty=empty)
        if not self.mirror.holds(at) and not self._is_free(at):
            self.log.changes(at)

    def moves(self, source: str, target: str) -> None:
        one, other = (self.mirror.own(each, follow=False) for each in (source, target))
        outside = [not (self.mirror.holds(each) or self._is_free(each)) for each in (one, other)]
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
        self._free = caches()

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


def lasting_caches() -> tuple[str, ...]:
    """The folders of caches that a second run would have to fill again: models, data, kernels and compiled graphs.

    They are named one by one, and never by a folder that holds them: other things may lie there too.
    """
    home, named = os.path.expanduser("~"), os.environ.get
    cache = named("XDG_CACHE_HOME") or os.path.join(home, ".cache")
    hugging_face = named("HF_HOME") or os.path.join(cache, "huggingface")
    folders = [named(f"HF_{name.upper()}_CACHE") or os.path.join(hugging_face, name) for name in LASTING]
    folders += [
        os.path.join(named("TORCH_HOME") or os.path.join(cache, "torch"), "hub"),
        named("TRITON_CACHE_DIR") or os.path.join(named("TRITON_HOME") or home, ".triton", "cache"),
        inductor_cache(),
    ]
    return _apart(folders)


def caches() -> tuple[str, ...]:
    """All folders of caches, which may grow; each with a slash behind it."""
    home, named = os.path.expanduser("~"), os.environ.get
    cache = named("XDG_CACHE_HOME") or os.path.join(home, ".cache")
    hugging_face = named("HF_HOME") or os.path.join(cache, "huggingface")
    folders = [os.environ[name] for name in OTHERS if named(name)]
    folders += [os.path.join(hugging_face, name) for name in ("assets", "evaluate", "metrics")]
    folders += [os.path.join(cache, name) for name in ("torch/kernels", "torch_extensions", "matplotlib", "wandb")]
    folders += [
        named("CUDA_CACHE_PATH") or os.path.join(home, ".nv", "ComputeCache"),
        os.path.join(home, ".config", "matplotlib"),
        os.path.join(home, "nltk_data"),
        os.path.join(named("KERAS_HOME") or os.path.join(home, ".keras"), "datasets"),
    ]
    return tuple(folder + os.sep for folder in (*lasting_caches(), *_apart(folders)))


def _apart(folders: Sequence[str]) -> tuple[str, ...]:
    """The real paths, but for one in which the working directory lies: what is there is no cache alone."""
    here = os.path.join(os.path.realpath(os.getcwd()), "")
    real = dict.fromkeys(os.path.realpath(folder) for folder in folders)
    return tuple(folder for folder in real if not here.startswith(folder + os.sep))


def inductor_cache() -> str:
    """Folder of what torch.compile has compiled, unless it is told otherwise."""
    import getpass

    try:
        user = getpass.getuser()
    except (ImportError, KeyError, OSError):  # a user without a name
        user = str(os.getuid())
    return os.path.join(tempfile.gettempdir(), f"torchinductor_{user}")
