"""Caches that a script makes beside its data, kept from one run to the next.

That is what ``map`` and ``filter`` of datasets write into a folder that was saved with ``save_to_disk``. The name of
such a file says what it was made of and how, so that it is right wherever it is found beside the same data.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
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
