"""Trees of files, and what there is to compare of them."""

from __future__ import annotations

import os
import stat
from pathlib import Path


def listing(*folders: Path) -> dict[str, tuple[object, ...]]:
    """What lies below the folders: the kind, mode, time of change, content and extended attributes of each."""
    found: dict[str, tuple[object, ...]] = {}
    for folder in folders:
        for below, names, files in os.walk(folder):
            for name in (*names, *files):
                path = Path(below, name)
                about = path.lstat()
                holds: object = None
                if path.is_symlink():
                    holds = os.readlink(path)
                elif path.is_file():
                    holds = path.read_bytes()
                mode, attributes = stat.S_IMODE(about.st_mode), _attributes(path)
                found[str(path)] = (stat.S_IFMT(about.st_mode), mode, about.st_mtime_ns, holds, *attributes)
    return found


def _attributes(path: Path) -> tuple[tuple[str, bytes], ...]:
    """The extended attributes, where the system has any."""
    if not hasattr(os, "listxattr"):
        return ()
    return tuple(
        (name, os.getxattr(path, name, follow_symlinks=False)) for name in os.listxattr(path, follow_symlinks=False)
    )


def tree(folder: Path) -> Path:
    """A folder with files, folders, a link, a second name of a file and a read-only file."""
    folder.mkdir(parents=True)
    for name in "abc":
        (folder / name).write_text(name)
    (folder / "d").mkdir()
    (folder / "d" / "e").write_text("e")
    (folder / "d" / "f").mkdir()
    (folder / "link").symlink_to("a")
    os.link(folder / "b", folder / "b2")
    (folder / "c").chmod(0o444)
    return folder
