"""What was written in a view: the upper folders, read from outside."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from harness.starts.view import AS_THEY_ARE, Plan, is_below


@dataclass(frozen=True)
class Changed:
    """Something in the upper folder: a file, link or folder that was written, or the removal of one."""

    path: str
    """Where the script sees it."""
    upper: str
    kind: str
    """file, link, folder or gone."""
    size: int = 0


def changes(made: Plan) -> Iterator[Changed]:
    """All that was written in a view, and nothing else."""
    tops = [(layer.lower, layer.upper) for layer in made.layers]
    mounted = {layer.lower for layer in made.layers} | set(made.bound) | set(made.through)
    mounted |= {f"/{name}" for name in AS_THEY_ARE}
    skipped = {os.path.dirname(made.root), *(os.path.dirname(os.path.dirname(upper)) for _, upper in tops)}
    for lower, upper in [("/", made.root), *tops]:
        for below, folders, files in os.walk(upper):
            at = os.path.normpath(os.path.join(lower, os.path.relpath(below, upper)))
            if lower == "/":
                # The root itself, and what was put together: only what was not there is the script's.
                folders[:] = [name for name in folders if os.path.join(at, name) not in mounted]
                files = [name for name in files if not os.path.lexists(os.path.join(at, name))]
                if at != "/" and not any(is_below(each, at) for each in mounted) and not os.path.lexists(at):
                    yield Changed(at, below, "folder")
            elif below != upper:
                yield Changed(at, below, "folder")
            folders[:] = [name for name in folders if os.path.join(below, name) not in skipped]
            for name in (*files, *(each for each in list(folders) if os.path.islink(os.path.join(below, each)))):
                there, path = os.path.join(below, name), os.path.join(at, name)
                found = os.lstat(there)
                if stat.S_ISCHR(found.st_mode) and found.st_rdev == 0:
                    yield Changed(path, there, "gone")
                elif stat.S_ISLNK(found.st_mode):
                    yield Changed(path, there, "link")
                elif stat.S_ISREG(found.st_mode):
                    yield Changed(path, there, "file", found.st_size)


def is_opaque(folder: str) -> bool:
    """Whether a folder of the upper one hides what lies below it."""
    for name in ("trusted.overlay.opaque", "user.overlay.opaque"):
        with suppress(OSError):
            if os.getxattr(folder, name) in (b"y", b"x"):
                return True
    return False
