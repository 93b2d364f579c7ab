"""How commands print: lines, with colours on a terminal, and JSON; nothing that is printed can end a command."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import click

from harness.errors import CannotTry
from harness.report.colours import coloured

STDOUT = Path("-")
"""As a file of ``--json``: JSON goes to stdout, and lines for people to stderr."""

_lost: list[str] = []
"""What could not be printed, and why, where it is not that nobody reads on."""


def say(line: str = "", *, err: bool = False, nl: bool = True) -> None:
    """Print a line. A reader that has gone (``| head``) ends nothing, nor does a full disk."""
    try:
        click.echo(coloured(line), err=err, nl=nl)
    except (OSError, ValueError) as error:  # ValueError: the checked script has closed it
        _gone("stderr" if err else "stdout", error)


def echo(lines: Iterable[str], *, err: bool = False) -> None:
    for line in lines:
        say(line, err=err)


def _gone(name: str, error: Exception) -> None:
    """From now on what is printed there goes nowhere, also what Python still flushes at the end."""
    if isinstance(error, OSError) and not isinstance(error, BrokenPipeError):
        _lost.append(f"{name} cannot be written ({error.strerror}), so not everything was shown")
    stream = getattr(sys, name)
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    except (OSError, ValueError):
        setattr(sys, name, None)


@contextmanager
def said_what_was_lost(cannot_try: int) -> Iterator[None]:
    """Exit status ``cannot_try`` instead of 0 where something could not be printed, with one sentence."""
    _lost.clear()
    status: object = 0
    try:
        yield
    except SystemExit as ended:
        status = ended.code
        raise
    finally:
        if _lost and not status:
            say(f"harness: {_lost[0]}", err=True)
            sys.exit(cannot_try)


@dataclass(frozen=True)
class Output:
    """Where a command's lines and its JSON go, and how much it says."""

    json_file: Path | None = None
    quiet: bool = False
    """Only what was found."""
    verbose: bool = False

    @property
    def err(self) -> bool:
        """Whether lines go to stderr, because stdout has the JSON."""
        return self.json_file == STDOUT

    def echo(self, lines: Iterable[str]) -> None:
        echo(lines, err=self.err)

    def check(self) -> None:
        """Whether ``--json`` can be written: known before the time is spent.

        Raises:
            CannotTry: it cannot.
        """
        if self.json_file is not None:
            check_json(self.json_file)

    def write_json(self, text: str) -> None:
        """Write ``--json``, where it is given.

        Raises:
            CannotTry: it cannot be written.
        """
        from harness.files import write_atomically

        if self.err:
            say(text.rstrip("\n"))
        elif self.json_file is not None:
            try:
                write_atomically(self.json_file, text.rstrip("\n") + "\n")
            except OSError as error:
                raise CannotTry(f"{self.json_file} cannot be written ({error.strerror}); choose another") from error


def check_json(file: Path) -> None:
    """Whether a file can be written: known before the time is spent. Of a device or a pipe only writing tells.

    Raises:
        CannotTry: it cannot.
    """
    from harness.files import check_writable

    if file == STDOUT or (file.exists() and not file.is_file()):
        return
    try:
        check_writable(file.absolute().parent)
    except OSError as error:
        raise CannotTry(f"{file} cannot be written ({error.strerror}); choose another") from error
