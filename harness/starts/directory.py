"""The directory of a mirror: where a script runs if the kernel keeps no view of the file system for it."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from harness.errors import CannotTry
from harness.files import write_atomically
from harness.put_back import CannotKeep, Log, put_back_all, remove
from harness.starts import caches
from harness.starts.caches import inductor_cache
from harness.starts.changes import Kept
from harness.starts.levels import Level
from harness.starts.mirror import Mirror, Stamp

AT, TEMPORARY, ABOUT = "at", "tmp", "about.json"

SHORT = "short"
"""A link to the link by which the folder for temporary files is known where its own path is long."""

LONG = 60
"""Characters of a path below which sockets may find no room: a socket's has 104 to 108 in all."""


@dataclass(frozen=True)
class Directory:
    """An isolated working directory on the disk: the mirror, a folder for temporary files, and where its log lies."""

    home: Path
    mirror: Mirror
    logs: Path
    """Folder with a log for each process that joins."""
    folders: tuple[str, ...] = ()
    """Folders that are mirrored; none where another process has named all that lies in them."""
    free: tuple[str, ...] = ()
    """Folders outside in which nothing is put back: they are the command's own."""
    level: Level = "mirror"

    @classmethod
    def make(
        cls,
        home: Path,
        folders: Sequence[str],
        logs: Path,
        free: Sequence[str] = (),
        level: Level = "mirror",
        named: Sequence[str] = (),
    ) -> Directory:
        """Make one with these folders, given by their absolute paths without links; ``logs`` is where its log lies.

        Raises:
            CannotTry: there is no room for it.
        """
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        mirror = Mirror(home / AT)
        try:
            (home / TEMPORARY).mkdir()
            _shorten(home)
            for folder in folders:
                mirror.add(folder)
            mirror.look_at(named)
            caches.bring(mirror)
        except (CannotKeep, OSError) as error:
            remove(str(home))
            why = error.strerror if isinstance(error, OSError) else str(error)
            raise CannotTry(
                f"no isolated working directory could be made in {home.parent} ({why}); set TMPDIR to a folder with "
                "free space, or run the script in place with --in-place"
            ) from error
        return cls(home, mirror, logs, tuple(folders), tuple(free), level)

    def share(self) -> None:
        """Let other processes join."""
        about = {
            "logs": str(self.logs),
            "free": self.free,
            "level": self.level,
            "linked": self.mirror.linked,
            "listing": self.mirror.listing,
        }
        write_atomically(self.home / ABOUT, json.dumps(about))

    @classmethod
    def join(cls, home: Path) -> Directory:
        """The directory that another process has made and shares."""
        about = json.loads((home / ABOUT).read_text(encoding="utf-8"))
        linked, listing = ({path: _stamp(each) for path, each in about[name].items()} for name in ("linked", "listing"))
        mirror = Mirror(home / AT, linked=linked, listing=listing)
        mirror.copied = dict(mirror.stamps())
        return cls(home, mirror, Path(about["logs"]), free=tuple(about["free"]), level=about["level"])

    def inside(self, word: str, folders: Sequence[str]) -> str:
        """A word of a command line with the paths of the mirror for those of its folders."""
        for folder in folders:
            # No part of another path, or of a URL.
            found = rf"(?<![\w./-]){re.escape(folder)}(?![\w.-])"
            word = re.sub(found, lambda _, folder=folder: self.mirror.of(folder), word)  # type: ignore[misc]
        return word

    def environment(self) -> dict[str, str]:
        """What is set for a script in it."""
        from harness.starts.isolated import VARIABLE

        kept = {} if "TORCHINDUCTOR_CACHE_DIR" in os.environ else {"TORCHINDUCTOR_CACHE_DIR": inductor_cache()}
        temporary = os.readlink(self.home / SHORT) if os.path.islink(self.home / SHORT) else str(self.home / TEMPORARY)
        return {"TMPDIR": temporary, VARIABLE: str(self.home), **kept}

    def starts(self, words: Sequence[str]) -> list[str]:
        """The command line that starts a command in it."""
        return list(words)

    @contextmanager
    def entered(self) -> Iterator[None]:
        """This process in it, unguarded: what it starts joins."""
        from harness.starts.isolated import go

        with ExitStack() as undo:
            go(self, undo)
            yield

    def hide(self, patterns: Sequence[str]) -> None:
        """Have files, given by patterns of their paths from the working directory, not be there."""
        for pattern in patterns:
            for found in Path(self.mirror.of(self.folders[0])).glob(pattern):
                remove(self.mirror.own(str(found), follow=False))

    def guarded(self) -> Kept:
        """What a guard of this process tells of changes."""
        number = f"{os.getpid()}-{time.monotonic_ns()}"
        return Kept(self.mirror, Log(self.logs / number), (str(self.home), *self.free))

    def put(self, path: str, data: bytes) -> None:
        """Have a file hold something else from the beginning."""
        Path(self.mirror.own(self.mirror.of(path))).write_bytes(data)

    def files(self, folder: str) -> frozenset[str]:
        """The files below a folder, relative to it."""
        from harness.starts.workdir import files_below

        return frozenset(files_below(Path(self.mirror.of(folder))))

    def put_back(self) -> list[str]:
        return put_back_all(self.logs)

    def remove(self) -> None:
        with suppress(OSError):
            os.unlink(os.readlink(self.home / SHORT))
        with suppress(OSError):
            remove(str(self.home))

    def reached(self) -> list[str]:
        """Real files that were changed through links: nothing was heard of that."""
        return [path for path, linked in self.mirror.changed() if linked]


def _stamp(given: Sequence[int]) -> Stamp:
    inode, size, changed, about = given
    return inode, size, changed, about


def _shorten(home: Path) -> None:
    """Give the folder for temporary files a short name, too."""
    if len(str(home / TEMPORARY)) > LONG:
        for place in ("/tmp", "/var/tmp"):  # noqa: S108 - a link that nobody else can have made
            short = f"{place}/h-{home.name.rpartition('-')[2]}"
            with suppress(OSError):
                os.symlink(home / TEMPORARY, short)
                os.symlink(short, home / SHORT)
                return
