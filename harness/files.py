"""Files that the harness writes and reads back: whole or not at all, and checked strictly."""

from __future__ import annotations

import difflib
import errno
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import BinaryIO, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from harness.errors import CannotTry

Model = TypeVar("Model", bound=BaseModel)

LOCK = ".lock"
"""Name of a file in a folder that somebody is writing to."""

LEFT_OUT = shutil.ignore_patterns(
    ".git", ".hg", "__pycache__", ".venv", "venv", ".tox", ".nox", "node_modules", ".mypy_cache", ".pytest_cache"
)
"""What is not copied of a working directory: no script's data."""

LARGEST = 20 * 2**30
"""Bytes of a working directory that are copied at most, for each start once."""

MOST_FILES = 400
"""Files, and folders, of a project that are looked at for names."""

LARGEST_FILE = 1_000_000
"""Bytes of one of them: a larger one is data."""


class StrictModel(BaseModel):
    """A part of a file. A key that it does not know is an error."""

    model_config = ConfigDict(
        ser_json_inf_nan="strings",  # "NaN" and "Infinity": JSON has no such numbers, and null would hide them
        extra="forbid",
        populate_by_name=True,
        serialize_by_alias=True,
    )


def read_model(path: Path, model: type[Model], what: str, remedy: str) -> Model:
    """Read a JSON file; ``what`` it is and the ``remedy`` are for the error.

    Raises:
        CannotTry: no such file, it cannot be read, or it is no such model; names the file, the key and what is wrong.
    """
    try:
        return model.model_validate_json(path.read_bytes())
    except FileNotFoundError as error:
        raise CannotTry(f"{what} {path} not found; {remedy}") from error
    except OSError as error:
        raise CannotTry(f"{what} {path} cannot be read ({error.strerror}); {remedy}") from error
    except ValidationError as error:
        raise CannotTry(f"{what} {path}: {first_error(error)}; {remedy}") from error


def first_error(error: ValidationError) -> str:
    """The key and what is wrong with it: of several errors that of the schema, or the one with the most exact place."""
    errors = error.errors()
    first = max(errors, key=lambda each: (each["loc"] == ("schema",), len(each["loc"])))
    place = ".".join(map(str, first["loc"])) or "the file"
    newer = " (of a newer harness?)" if place == "schema" else ""
    more = f" ({len(errors)} in all)" if len(errors) > 1 else ""
    return f"{place}: {first['msg'].removeprefix('Value error, ')}{newer}{more}"


def write_atomically(path: Path, text: str) -> None:
    """Replace ``path`` with ``text``; a reader, or a crash, sees the old file or the new one and nothing between."""
    path = path.resolve()  # a link stays a link
    if path.exists() and not path.is_file():  # /dev/stdout, a pipe: nothing to replace
        path.write_text(text, encoding="utf-8")
        return
    with replaced_atomically(path) as file:
        file.write(text.encode("utf-8"))


@contextmanager
def replaced_atomically(path: Path) -> Iterator[BinaryIO]:
    """A file that takes the place of ``path`` when the block is through, and is gone where it is not."""
    new = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with new.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            shutil.copymode(path, new)
        os.replace(new, path)
    finally:
        new.unlink(missing_ok=True)


def remove_unfinished(*paths: Path) -> None:
    """Remove what a process that was killed had not yet put in the place of these files and folders."""
    for path in paths:
        for left in path.parent.glob(f".{path.name}.*"):
            shutil.rmtree(left) if left.is_dir() else left.unlink(missing_ok=True)


@contextmanager
def claimed(lock: Path, *, timeout: float = -1) -> Iterator[None]:
    """Nobody else is in such a block with this file, which is there meanwhile; a process that is killed lets it go.

    ``timeout``: seconds to wait for somebody else; for ever where it is negative.

    Raises:
        Timeout: of filelock: somebody else is there.
        OSError: the file cannot be written.
    """
    from filelock import FileLock  # watching a script needs none

    with FileLock(lock, timeout=timeout):
        try:
            yield
        finally:
            lock.unlink(missing_ok=True)  # while it is held: whoever waits for it takes a new one


@contextmanager
def claimed_folder(folder: Path) -> Iterator[None]:
    """The folder, which is made where it is not there, is this command's alone while the block runs.

    Raises:
        CannotTry: it is another's, or cannot be written.
    """
    from filelock import Timeout

    with ExitStack() as stack:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            check_writable(folder)
            stack.enter_context(claimed(folder / LOCK, timeout=0))
        except Timeout as error:
            raise CannotTry(
                f"another run is writing to output folder {folder}; choose another with --output"
            ) from error
        except OSError as error:
            raise CannotTry(
                f"output folder {folder} cannot be written ({error.strerror}); choose another with --output"
            ) from error
        yield


NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def no_space(error: BaseException | None) -> str | None:
    """What the system says of a disk that is full, where that is what led to the error; None of other errors."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in NO_SPACE:
            return os.strerror(error.errno)
        # Some libraries in other languages give its words alone.
        if found := next((reason for reason in map(os.strerror, NO_SPACE) if reason in str(error)), None):
            return found
        error = error.__cause__ or error.__context__
    return None


@contextmanager
def working_in(folder: Path) -> Iterator[None]:
    """Relative paths are below ``folder`` for a while."""
    try:
        before = os.getcwd()
    except FileNotFoundError:  # it has been removed
        before = None
    os.chdir(folder)
    try:
        yield
    finally:
        if before is not None:
            os.chdir(before)


def check_size(folder: Path, most: int = LARGEST) -> None:
    """Whether a working directory can be copied for each start.

    Raises:
        CannotTry: it is too large, with more than ``most`` bytes.
    """
    size = 0
    for path, folders, files in os.walk(folder):
        left_out = LEFT_OUT(path, [*folders, *files])
        folders[:] = [each for each in folders if each not in left_out]
        for name in files:
            with suppress(OSError):
                size += os.lstat(os.path.join(path, name)).st_size
        if size > most:
            raise CannotTry(
                f"the working directory {folder} holds more than {most >> 30} GiB, and each start needs a copy of "
                "it; start in a folder that holds only the script and what it reads"
            )


def check_writable(folder: Path) -> None:
    """Create a file in the folder and remove it.

    Raises:
        OSError: that is not possible; asking for permissions would not tell (root, read-only file systems).
    """
    probe = folder / f".harness.{os.getpid()}"
    probe.touch()
    probe.unlink()


def diff_lines(before: str, after: str, name: str) -> Iterator[str]:
    """A patch, as ``git apply`` and ``patch -p1`` take it; each line with its end."""
    old, new = (each.splitlines(keepends=True) for each in (before, after))
    if any(line.endswith(("\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029")) for line in old):
        old, new = (re.findall(r"[^\n]*\n|[^\n]+", each) for each in (before, after))
    for line in difflib.unified_diff(old, new, f"a/{name}", f"b/{name}"):
        yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def texts_below(folder: Path) -> list[tuple[str, str]]:
    """The Python files of a project, as names and texts: not those of environments and of hidden folders."""
    found: list[tuple[str, str]] = []
    for root, folders, files in islice(os.walk(folder), MOST_FILES):  # folders of data may be many
        known = {name for name in folders if name[0] == "." or Path(root, name, "pyvenv.cfg").exists()}
        folders[:] = sorted(set(folders) - known - LEFT_OUT(root, folders))
        for file in sorted(Path(root, name) for name in files if name.endswith(".py")):
            if len(found) == MOST_FILES:
                return found
            with suppress(OSError):
                if file.is_file() and file.stat().st_size <= LARGEST_FILE:
                    found.append((os.path.relpath(file, folder), file.read_text(encoding="utf-8", errors="replace")))
    return found
