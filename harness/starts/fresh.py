"""Fresh starts: which files a script saved and would continue from, so that they can be hidden from it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from harness.starts.journal import Journal
from harness.starts.workdir import Command, Scratch, scratch

MOST = 8
"""Patterns of files that are tried: each takes a start of the script up to its first update."""


def own_checkpoints(command: Command) -> tuple[str, ...]:
    """Patterns, relative to the working directory, of the files that a script continues from and saved itself.

    The script is started up to its first update, and once more without each file that it loads before: what it cannot
    start without is no checkpoint of its own. Numbers in a name stand for all numbers.
    """
    with scratch("harness-fresh-") as given:
        first = _started(given, 0, command)
        found: list[str] = []
        for number, pattern in enumerate(_patterns(first)[:MOST], start=1):
            without = _started(given, number, replace(command, hidden=(*found, pattern)))
            if without.updates:
                found.append(pattern)
    return tuple(found)


def _started(given: Scratch, number: int, command: Command) -> Journal:
    workdir = given.workdir(number, command)
    try:
        return workdir.start(workdir.orders(most_updates=1)).journals[0]
    finally:
        workdir.remove()


def _patterns(journal: Journal) -> list[str]:
    """Patterns of the files in the working directory that were read before the first update, the latest first."""
    read = [each.path for each in journal.loads if each.path is not None and each.at == 0]
    inside = [path for path in reversed(read) if not Path(path).is_absolute()]
    return list(dict.fromkeys(map(pattern_of, inside)))


def pattern_of(path: str) -> str:
    """What a script saves beside a file under other numbers: the folder's or the file's, whichever is nearer to it.

    >>> pattern_of("out/checkpoint-32/optimizer.pt"), pattern_of("last.pt"), pattern_of("epoch3.pt")
    ('out/checkpoint-*', 'last.pt', 'epoch*.pt')
    """
    parts: Sequence[str] = Path(path).parts
    numbered = [at for at, part in enumerate(parts) if re.search(r"\d", part)]
    if not numbered:
        return path
    last = numbered[-1]
    return str(Path(*parts[:last], re.sub(r"\d+", "*", parts[last])))
