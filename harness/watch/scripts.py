"""Check several scripts, each in a process of its own."""

from __future__ import annotations

import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pydantic import TypeAdapter

from harness.findings import SCHEMA, Finding, shortened
from harness.processes import afterwards, started
from harness.spread import On, spread
from harness.watch.script import CheckReport

CANNOT_TRY = 2


@dataclass(frozen=True)
class ScriptReport:
    """What one of several scripts came to."""

    script: str
    """Path of the script, or ``-m MODULE``, with its arguments."""
    status: int
    """Exit status that ``harness check`` has for this script alone."""
    report: CheckReport | None = None
    """None where it could not be run."""
    error: str | None = None
    """Why it could not be run."""


@dataclass
class ScriptsReport:
    """What several scripts came to."""

    scripts: list[ScriptReport] = field(default_factory=list)

    @property
    def status(self) -> int:
        """The highest: 3 a script crashed, 2 one could not run, 1 an error was found, 0 nothing was."""
        return max(each.status for each in self.scripts)

    @property
    def findings(self) -> list[Finding]:
        return [finding for each in self.scripts if each.report for finding in each.report.findings]

    def as_dict(self) -> dict[str, Any]:
        """Report in the form of ``--json``."""
        told = [vars(each) | {"report": each.report.as_dict() if each.report else None} for each in self.scripts]
        return {"schema": SCHEMA, "kind": "scripts", "scripts": told}


def check_scripts(commands: Sequence[Sequence[str]], options: Sequence[str], on: On = "here") -> Iterator[ScriptReport]:
    """Each command's report, in order; ``options`` are those of ``harness check``.

    What the scripts print is not shown. One that is running when this one is ended, ends too. They are run in the
    working directory, or where :func:`harness.spread.spread` has them run: on Ray in a copy of it each.

    Raises:
        CannotTry: as :func:`harness.spread.spread` does.
    """
    for _, report in spread(partial(_checked, options), commands, on, folder=Path.cwd(), in_order=True):
        yield report


def _checked(options: Sequence[str], command: Sequence[str]) -> ScriptReport:
    ran, script = run_apart(["check", *options], command), shlex.join(command)
    if ran.written is not None and ran.status in (0, 1, 2, 3):
        return ScriptReport(script, ran.status, TypeAdapter(CheckReport).validate_json(ran.written))
    return ScriptReport(script, CANNOT_TRY, error=ran.last_words)


@dataclass(frozen=True)
class Ran:
    """How a command of the harness ended."""

    status: int
    written: bytes | None
    """What it wrote with ``--json``; None where it wrote nothing."""
    last_words: str
    """The sentence that it ended with, or else how its process ended."""


def run_apart(ours: Sequence[str], command: Sequence[str], **options: Any) -> Ran:
    """Run a command of the harness on a script, in a process of its own that ends with this one. Nothing is shown.

    ``options`` are those of :class:`subprocess.Popen`.
    """
    with TemporaryDirectory(prefix="harness-apart-") as name, afterwards(Path(name)) as left_behind:
        file, printed = Path(name) / "found.json", Path(name) / "stderr.txt"
        words = [sys.executable, "-P", "-m", "harness", *ours, "--json", str(file), *command]
        options |= {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}
        with printed.open("wb") as stderr, started(words, left_behind, stderr=stderr, **options) as process:
            process.wait()
        written = file.read_bytes() if file.exists() else None
        printed_text = printed.read_text(encoding="utf-8", errors="replace")
    return Ran(process.returncode, written, _why(process.returncode, printed_text))


def _why(code: int, printed: str) -> str:
    """The sentence that ``harness check`` ended with, or else how the process ended."""
    *_, last = ["", *filter(None, map(str.strip, printed.splitlines()))]
    if code < 0:
        return f"it was ended by {signal.Signals(-code).name}"
    return shortened(last.removeprefix("harness: ").removeprefix("Error: ")) or f"it ended with exit status {code}"
