"""``harness compare``"""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.cli.options import FOUND, interruptible, json_option, quiet_option
from harness.cli.output import Output, say
from harness.errors import CannotTry

if TYPE_CHECKING:
    from harness.compare.differences import CompareReport


@click.command(short_help="Name the first update in which two runs part, and why.")
@click.option("--args-a", default="", metavar="ARGS", help="Arguments of A.")
@click.option("--args-b", default="", metavar="ARGS", help="Arguments of B.")
@click.option("--python-a", metavar="PYTHON", help="The interpreter that runs A, which has the harness too.")
@click.option("--python-b", metavar="PYTHON", help="The one that runs B.")
@click.option(
    "--updates", type=click.IntRange(min=1), default=50, show_default=True, metavar="N", help="How many are compared."
)
@quiet_option
@json_option("Also write what differs to this file.")
@click.argument("a")
@click.argument("b", required=False)
@interruptible
def compare(
    a: str,
    b: str | None,
    args_a: str,
    args_b: str,
    python_a: str | None,
    python_b: str | None,
    updates: int,
    json_file: Path | None,
    quiet: bool,
) -> None:
    """Name the first update in which two runs part, and why.

    A and B are training scripts, or A alone is one, with two argument lists or under two interpreters. Each runs in a
    copy of the working directory; compared are settings, weights, rows, random numbers, and in the first update that
    differs what each module, the loss, the gradients and the step compute. Or they are two run records (run.json).

    Exit status: 0 they are the same, bit for bit, 1 they differ, 2 could not run: a script crashes or trains nothing.
    """
    out = Output(json_file, quiet)
    out.check()
    if b is None and (args_a, python_a) == (args_b, python_b):
        raise click.UsageError(
            "give a second script, or other arguments (--args-b) or Python (--python-b) for the first"
        )

    from harness.compare.records import compare_records, is_record
    from harness.report.compare import outcome_lines

    if b is not None and is_record(a) and is_record(b):
        report = compare_records(a, b)
    else:
        report = _compared([(a, args_a, python_a), (b or a, args_b, python_b)], updates, quiet)
    out.echo(outcome_lines(report))
    out.write_json(json.dumps(report.as_dict(), indent=2))
    sys.exit(FOUND if report.differ else 0)


def _compared(sides: Sequence[tuple[str, str, str | None]], updates: int, quiet: bool) -> CompareReport:
    """Of two scripts, each with its arguments and its interpreter."""
    from harness.compare.run import compare_scripts, interpreter
    from harness.resume.run import silent
    from harness.resume.starts import Command

    commands = []
    for script, arguments, python in sides:
        try:
            command = Command(script, tuple(shlex.split(arguments)))
        except ValueError as error:
            raise CannotTry(f"{arguments!r} cannot be read as a command line: {error}") from error
        commands.append(command if python is None else replace(command, python=interpreter(python)))
    return compare_scripts(commands[0], commands[1], updates=updates, tell=silent if quiet else partial(say, err=True))
