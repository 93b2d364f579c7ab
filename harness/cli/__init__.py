"""The command line: one module a command.

Exit status: 0 all holds (or warnings only), 1 something was found, 2 could not run, 3 the checked script itself
crashed.
"""

from __future__ import annotations

import os
import re
import sys
from collections import Counter
from importlib import metadata
from typing import Any

import click

from harness import __version__
from harness.cli import (
    baseline,
    check,
    claims,
    compare,
    describe,
    doctor,
    documents,
    explain,
    matrix,
    report,
    resume,
    run,
    tokens,
    vary,
)
from harness.cli.options import CANNOT_TRY
from harness.cli.output import said_what_was_lost, say
from harness.errors import CannotTry

GROUPS: dict[str, tuple[click.Command, ...]] = {
    "Your script": (
        check.check,
        describe.describe,
        tokens.tokens,
        resume.resume,
        compare.compare,
        vary.vary,
        explain.explain,
        report.report,
    ),
    "Pinned runs": (baseline.baseline,),
    "The documented run": (run.run, matrix.matrix, documents.documents, claims.claims),
    "This machine": (doctor.doctor,),
}
"""Every command, under the heading that ``harness --help`` shows, in the order in which a user needs them."""


class _Group(click.Group):
    """The commands by group in the help, and :class:`CannotTry` as one sentence instead of a traceback."""

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, self.commands))
        for heading, commands in GROUPS.items():
            rows = [(f"{command.name or '':{width}}", command.get_short_help_str(80)) for command in commands]
            with formatter.section(heading):
                formatter.write_dl(rows)

    def invoke(self, context: click.Context) -> Any:
        with said_what_was_lost(CANNOT_TRY):
            try:
                return super().invoke(context)
            except CannotTry as error:
                say(f"harness: {error}", err=True)
            except ModuleNotFoundError as error:
                package = (error.name or "").partition(".")[0]
                if (extra := extra_of(package)) is None:
                    raise
                say(
                    f"harness: this command needs {package}, which is not installed; "
                    f'pip install "full-training-harness[{extra}]"',
                    err=True,
                )
            except KeyboardInterrupt:
                say("harness: interrupted", err=True)
            except OSError as error:
                from harness.files import no_space

                if (full := no_space(error)) is None:
                    raise
                say(f"harness: {error.filename or 'what was found'} could not be written ({full})", err=True)
            sys.exit(CANNOT_TRY)


def extra_of(package: str) -> str | None:
    """The extra of this package that brings a module of that name, the smallest; None for what no extra brings."""
    sizes, found = Counter[str](), set[str]()
    for line in metadata.requires("full-training-harness") or ():
        name, extra = re.match(r"[\w.-]+", line), re.search(r"extra == ['\"](\w+)", line)
        if name is not None and extra is not None:
            sizes[extra[1]] += 1
            found |= {extra[1]} if name[0].replace("-", "_") == package else set()
    return min(found, key=sizes.__getitem__, default=None)


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="harness")
def main() -> None:
    """Is your training loop correct? Does it survive a kill? Does the documented fine-tuning recipe work here?

    Exit status: 0 nothing was found (or only warnings), 1 something was found, 2 the command could not run, 3 the
    checked script itself crashed.
    """
    if "torch" not in sys.modules:
        spin_briefly()
    say_what_is_left()


def say_what_is_left() -> None:
    """Say that a command that was killed left files changed, where the process that puts them back was killed too."""
    from harness.put_back import left_behind, logs_folder

    if next(left_behind(logs_folder()), None) is not None and "doctor" not in sys.argv[1:2]:
        say("harness: a killed command left files changed; see harness doctor", err=True)


SPINS = "10000"
"""Turns of its loop after which a thread of OpenMP that waits goes to sleep, where the user has said nothing."""


def spin_briefly() -> None:
    """Let threads of OpenMP that wait for each other soon go to sleep, here and in every process started from here.

    By default they spin for long: beside other work, a thread that has a core waits for one that has none, and an
    update of a small model takes many times as long (docs/decisions.md has the figures). How many threads there are
    stays as it is, and so does every bit that is computed. What the user has set counts. torch reads it when it is
    imported.
    """
    if not {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT"} & os.environ.keys():
        os.environ["GOMP_SPINCOUNT"] = SPINS


for commands in GROUPS.values():
    for command in commands:
        main.add_command(command)
