"""``harness tokens``"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.cli.options import (
    CANNOT_TRY,
    CRASHED,
    FileOptions,
    examples,
    file_options,
    json_option,
    quiet_option,
    script_arguments,
)
from harness.cli.output import STDOUT, Output, echo, stdout_on_stderr

if TYPE_CHECKING:
    from harness.findings import Isolation
    from harness.starts.isolated import Place
    from harness.watch.teaching import TaughtReport


@click.command(
    short_help="Show which tokens of which rows a training script teaches.",
    epilog=examples("harness tokens train.py", "harness tokens --rows 8 -m package.train"),
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.option("--rows", type=click.IntRange(min=1), default=4, show_default=True, metavar="N", help="Show N rows.")
@click.option(
    "--updates",
    type=click.IntRange(min=1),
    default=2,
    show_default=True,
    metavar="N",
    help="Stop the script after N updates.",
)
@file_options
@click.option("-m", "module", is_flag=True, help="SCRIPT is the name of a module, as with python -m.")
@quiet_option
@json_option("Also write the rows and shares to this file.")
@click.argument("script")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def tokens(
    script: str,
    arguments: tuple[str, ...],
    rows: int,
    updates: int,
    module: bool,
    files: FileOptions,
    quiet: bool,
    json_file: Path | None,
) -> None:
    """Run a script that fine-tunes a language model for a few updates, and show what it teaches.

    The command shows the first rows decoded, as the model gets them after template, truncation, packing and collator.
    It marks the tokens that carry a loss, and then gives shares over all rows seen.

    Exit status: 0 rows were shown, 2 there were no rows to show, 3 the script crashed.
    """
    output = Output(json_file, quiet, False, "text").from_here()
    output.check()
    arguments = script_arguments(script, arguments, module=module)
    restore = stdout_on_stderr()
    from harness.report.tokens import lines
    from harness.starts.apart import run

    def watched(place: Place, leaving: Callable[[Callable[[], TaughtReport]], int]) -> TaughtReport:
        from harness.watch.teaching import taught_by

        return taught_by(place.script, place.arguments, module=module, rows=rows, updates=updates)

    def told(report: TaughtReport, isolation: Isolation) -> int:
        restore()
        report = replace(report, isolation=isolation)
        if not (quiet and json_file):
            echo(lines(report), err=json_file == STDOUT)
        echo(isolation.lines(quiet=quiet), err=True)
        output.write_json(json.dumps(report.as_dict(), indent=1))
        return CRASHED if report.crashed is not None else CANNOT_TRY if isolation.harmed else 0

    sys.exit(run(script, arguments, watched, told, **files.how(script, arguments, module=module)))
