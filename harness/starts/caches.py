"""Caches: the folders that libraries keep them in, and those that a script makes beside its data.

The latter are kept from one run to the next.

That is what ``map`` and ``filter`` of datasets write into a folder that was saved with ``save_to_disk``. The name of
such a file says what it was made of and how, so that it is right wherever it is found beside the same data.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from harness.files import write_atomically
from harness.put_back import cache_folder, remove

PATTERN = "cache-*.arrow"
ABOUT, STATE = "about.json", "state.json"

LARGEST = 5 * 2**30
"""Bytes that are kept in all; what was used longest ago goes first."""


SOON_GONE = ("/tmp", "/var/tmp", "/private/tmp", "/private/var/folders")  # noqa: S108 - nothing is written there
"""Folders below which nothing is there for the next run."""


def bring(mirror: Any) -> None:
    """Link the caches that were kept into a mirror (or what stands for one), beside the data that they were made of."""
    for kept in _kept():
        with suppress(OSError, ValueError, KeyError):
            folder = json.loads((kept / ABOUT).read_text(encoding="utf-8"))["folder"]
            there = mirror.of(folder)
            if kept.name != _key(folder) or not os.path.isdir(there):
                continue
            for file in kept.glob(PATTERN):
                here = mirror.own(os.path.join(there, file.name), follow=False)
                if mirror.holds(here) and not os.path.lexists(here):
                    os.symlink(file, here)
                    os.utime(kept)


def keep(where: Mapping[str, str], written: Iterable[str]) -> list[str]:
    """Keep the caches among what was written, given by real paths: those that are kept.

    ``where`` has the path at which each lies.
    """
    found = []
    for path in written:
        folder = os.path.dirname(path)
        if not Path(path).match(PATTERN) or not os.path.isfile(os.path.join(folder, STATE)):
            continue
        if any(Path(folder).is_relative_to(each) for each in SOON_GONE):
            continue
        kept = _home() / _key(folder)
        with suppress(OSError):
            kept.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(where[path], kept / f".{os.getpid()}")
            os.replace(kept / f".{os.getpid()}", kept / os.path.basename(path))
            write_atomically(kept / ABOUT, json.dumps({"folder": folder}))
            found.append(path)
    if found:
        _forget()
    return found


def _forget() -> None:
    """Remove what was used longest ago, until the rest is small enough."""
    sizes = {kept: sum(each.stat().st_size for each in kept.iterdir()) for kept in _kept()}
    for kept in sorted(sizes, key=lambda each: each.stat().st_mtime_ns):
        if sum(sizes.values()) <= LARGEST:
            return
        remove(str(kept))
        sizes.pop(kept)


def _key(folder: str) -> str:
    """What stands for the data in a folder: where it lies, and its state, which has the fingerprint of its rows."""
    state = Path(folder, STATE).read_bytes()
    return hashlib.sha256(os.fsencode(folder) + b"\0" + state).hexdigest()[:32]


def _home() -> Path:
    return cache_folder() / "data"


def _kept() -> Iterator[Path]:
    with suppress(OSError):
        yield from [each for each in _home().iterdir() if each.is_dir()]


LASTING = ("hub", "datasets", "modules", "xet")
"""Folders below Hugging Face's that are made where they are missing, so that what a script downloads is there again."""

OTHERS = (
    "TRANSFORMERS_CACHE TORCH_EXTENSIONS_DIR NUMBA_CACHE_DIR MPLCONFIGDIR NLTK_DATA WANDB_CACHE_DIR PYTHONPYCACHEPREFIX"
).split()
"""Variables that each name one more folder of a cache."""


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


def cache_folders() -> tuple[str, ...]:
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
