"""Trees of files, and what there is to compare of them."""

from __future__ import annotations

import os
import stat
from pathlib import Path


def listing(*folders: Path) -> dict[str, tuple[object, ...]]:
    """What lies below the folders: the kind, the mode, the time of change and what it holds of each."""
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
                found[str(path)] = (stat.S_IFMT(about.st_mode), stat.S_IMODE(about.st_mode), about.st_mtime_ns, holds)
    return found


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
