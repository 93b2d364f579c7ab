"""The documents of a folder."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from harness.documented_run.documents.blocks import Block, blocks_of, with_indentation
from harness.errors import CannotTry

SUFFIXES = (".md", ".mdx", ".ipynb", ".txt")


class Document(NamedTuple):
    """A file with its blocks."""

    path: Path
    file: str
    """Path of the file below the folder that was given."""
    blocks: list[Block]


def read_documents(place: Path) -> list[Document]:
    """The documents of a folder, its folders included, or one file. Hidden files and folders are left out.

    A document is called by the beginning of its file's name, to the first underscore, where no other one is called so;
    otherwise by its path.

    Raises:
        CannotTry: there is no document, none has a block, or one cannot be read.
    """
    kinds = ", ".join(f"*{suffix}" for suffix in SUFFIXES)
    if not place.exists():
        raise CannotTry(f"{place} not found; give a folder with documents ({kinds}), or one of them")
    paths = sorted(_paths(place))
    if not paths:
        raise CannotTry(f"no documents in {place}: expected files {kinds} with blocks of code")
    root = place if place.is_dir() else place.parent
    read = [_read(path, path.relative_to(root).as_posix()) for path in paths]
    short = Counter(path.stem.partition("_")[0] for path in paths)
    found = [
        Document(path, path.relative_to(root).as_posix(), _called(blocks, path.relative_to(root).as_posix(), short))
        for path, blocks in zip(paths, with_indentation(read), strict=True)
    ]
    if not any(document.blocks for document in found):
        raise CannotTry(f"no blocks of Python in the documents of {place}; expected fences, cells or listings")
    return found


def _paths(place: Path) -> Iterator[Path]:
    if place.is_file():
        if place.suffix in SUFFIXES:
            yield place
        return
    for path in place.rglob("*"):
        hidden = any(part.startswith(".") for part in path.relative_to(place).parts)
        if path.suffix in SUFFIXES and path.is_file() and not hidden:
            yield path


def _read(path: Path, file: str) -> list[Block]:
    try:
        return blocks_of(path, file)
    except UnicodeDecodeError as error:
        raise CannotTry(f"document {path} cannot be read ({error}); expected UTF-8 text") from error
    except (OSError, ValueError) as error:
        raise CannotTry(f"document {path} cannot be read: {error}") from error


def _called(blocks: list[Block], file: str, short: Counter[str]) -> list[Block]:
    return [replace(each, document=each.document if short[each.document] == 1 else file) for each in blocks]
