"""How commands print: lines, with colours on a terminal, and JSON; nothing that is printed can end a command."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from harness.errors import CannotTry
from harness.report.colours import coloured

if TYPE_CHECKING:
    from harness.report.log import Log

STDOUT = Path("-")
"""Value of ``--json`` for which JSON goes to stdout, and lines for people to stderr."""

SCRIPTS = (".py", ".ipynb")
"""How the files that commands run end: none of them is ever written to."""

STREAMS = {"stdout": 1, "stderr": 2}
"""The files that the streams were opened on, by their numbers."""

Format = Literal["text", "json", "github", "sarif"]
"""What stdout gets: lines for people or, with those on stderr, one of the forms for programs."""

_lost: list[str] = []
"""What could not be printed, and why, where it is not that nobody reads on."""


def say(line: str = "", *, err: bool = False, nl: bool = True) -> None:
    """Print a line. A reader that has gone (``| head``) ends nothing, nor does a full disk."""
    name = "stderr" if err else "stdout"
    try:
        _reopen(name)
        click.echo(coloured(line), err=err, nl=nl)
    except (OSError, ValueError) as error:
        _gone(name, error)


def _reopen(name: str) -> None:
    """A stream that the checked script closed: what it was opened on is there still."""
    if getattr(getattr(sys, name), "closed", False):
        setattr(sys, name, open(STREAMS[name], "w", encoding="utf-8", errors="replace", closefd=False))  # noqa: SIM115


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
    """One sentence where something could not be printed, and exit status ``cannot_try`` instead of 0."""
    _lost.clear()
    status: object = 0
    try:
        yield
    except SystemExit as ended:
        status = ended.code
        raise
    finally:
        if _lost:
            say(f"harness: {_lost[0]}", err=True)
            if not status:
                sys.exit(cannot_try)


def stdout_on_stderr() -> Callable[[], None]:
    """From now on what this process and its children print to stdout goes to stderr; what it returns undoes that."""
    try:
        sys.stdout.flush()
        kept = os.dup(1)
    except (AttributeError, OSError, ValueError):  # it is closed
        return lambda: None
    os.dup2(2, 1)

    def back() -> None:
        for stream in (sys.stdout, sys.__stdout__):  # a script may have put one of its own there
            with suppress(AttributeError, OSError, ValueError):
                stream.flush()  # type: ignore[union-attr]
        os.dup2(kept, 1)

    return back


@dataclass(frozen=True)
class Output:
    """Where a command's lines and its JSON go, and how much it says."""

    json_file: Path | None = None
    quiet: bool = False
    """Only what was found."""
    verbose: bool = False
    format: Format = "text"
    taken: bool = False
    """Whether stdout has something else, such as a patch."""
    receipt: Path | None = None
    """A file of Markdown for a pull request."""

    @property
    def err(self) -> bool:
        """Whether lines go to stderr, because stdout has a form for programs."""
        return self.taken or self.format != "text" or self.json_file == STDOUT

    @property
    def options(self) -> list[str]:
        """What says the same on a command line."""
        json_file = [f"--json={self.json_file}"] if self.json_file is not None else []
        json_file += [f"--receipt={self.receipt}"] if self.receipt is not None else []
        return [*json_file, f"--format={self.format}", *["--quiet"] * self.quiet, *["--verbose"] * self.verbose]

    def from_here(self) -> Output:
        """The same for a process that goes to another folder."""
        json_file, receipt = (each and each.absolute() for each in (self.json_file, self.receipt))
        return replace(self, json_file=self.json_file if self.json_file == STDOUT else json_file, receipt=receipt)

    def echo(self, lines: Iterable[str]) -> None:
        echo(lines, err=self.err)

    def check(self) -> None:
        """Whether ``--json`` can be written: known before the time is spent.

        Raises:
            CannotTry: it cannot.
            click.UsageError: stdout would get JSON and another form.
        """
        if self.json_file == STDOUT and self.format not in ("text", "json"):
            raise click.UsageError(f"--json - and --format {self.format} both write to stdout: name a file for --json.")
        if self.json_file is not None:
            check_json(self.json_file)
        if self.receipt is not None:
            check_receipt(self.receipt)

    def write(self, as_json: str, log: Callable[[], Log]) -> None:
        """Write what was found in the forms that are asked for; GitHub gets its annotations without asking.

        The ``log`` is made where a form needs it.

        Raises:
            CannotTry: ``--json`` cannot be written.
        """
        from harness.report import annotations, sarif

        if self.format == "github":
            echo(annotations.of_log(log()))
        elif annotations.running_in_github_actions():
            self.echo(annotations.of_log(log()))
        if self.format == "sarif":
            say(json.dumps(sarif.of_log(log()), indent=2))
        self.write_json(as_json)

    def write_json(self, text: str) -> None:
        """Write JSON to stdout and to the file of ``--json``, where that is asked for.

        Raises:
            CannotTry: it cannot be written.
        """
        if self.format == "json" or self.json_file == STDOUT:
            say(text.rstrip("\n"))
        if self.json_file is not None and self.json_file != STDOUT:
            self.write_file(self.json_file, text)

    def write_file(self, file: Path, text: str) -> None:
        """Write a whole file or none.

        Raises:
            CannotTry: it cannot be written.
        """
        from harness.files import write_atomically

        try:
            write_atomically(file, text.rstrip("\n") + "\n")
        except OSError as error:
            raise CannotTry(f"{file} cannot be written ({error.strerror}); choose another") from error


def check_json(file: Path) -> None:
    """Whether ``--json`` may write this file: nothing, an empty file or a report of ours is there.

    Raises:
        CannotTry: another file is there, it is named like a script, or it cannot be written.
    """
    if file.suffix in SCRIPTS:
        raise CannotTry(
            f"--json {file} would write a report to a script; write --json FILE.json, or --json - to print it"
        )
    if not is_special(file):
        check_replaceable(file)
    check_file(file)


def check_receipt(file: Path) -> None:
    """Whether ``--receipt`` may write this file: nothing, an empty file or a receipt is there.

    Raises:
        CannotTry: another file is there, it is not named as Markdown is, or it cannot be written.
    """
    from harness.report.check import RECEIPT

    if file.suffix != ".md":
        raise CannotTry(f"--receipt {file} needs a Markdown file name; write --receipt FILE.md")
    try:
        ours = not file.exists() or not (text := file.read_bytes()) or text.startswith(RECEIPT.encode())
    except OSError as error:
        raise CannotTry(f"{file} cannot be read ({error.strerror}); choose another") from error
    if not ours:
        raise CannotTry(
            f"{file} exists and is not a receipt of the harness, so it is not overwritten; choose another file"
        )
    check_file(file)


def is_special(file: Path) -> bool:
    """Whether it is stdout or a device: of these only writing tells whether it can be.

    Raises:
        CannotTry: it is a named pipe, which holds a command until somebody reads; or no file can have that name.
    """
    try:
        if file.is_fifo():
            raise CannotTry(f"{file} is a named pipe; name a file, or write - for stdout")
        return file == STDOUT or (file.exists() and not file.is_file())
    except OSError as error:
        raise CannotTry(f"{str(file)[:60]} cannot be written ({error.strerror}); choose another") from error


def check_replaceable(file: Path) -> None:
    """Whether a report may take the place of a file: of an older report, or of an empty file.

    Raises:
        CannotTry: it is another file, or cannot be read.
    """
    from harness.report.html.inputs import is_report

    try:
        ours = not file.exists() or file.stat().st_size == 0 or is_report(file.read_bytes())
    except OSError as error:
        raise CannotTry(f"{file} cannot be read ({error.strerror}); choose another") from error
    if not ours:
        raise CannotTry(
            f"{file} exists and is not a report of the harness, so it is not overwritten; choose another file"
        )


def check_file(file: Path) -> None:
    """Whether a file can be written: known before the time is spent.

    Raises:
        CannotTry: it cannot.
    """
    from harness.files import check_writable

    if is_special(file):
        return
    try:
        check_writable(file.absolute().parent)
    except OSError as error:
        raise CannotTry(f"{file} cannot be written ({error.strerror}); choose another") from error
