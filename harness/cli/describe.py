"""``harness describe``"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness import launch
from harness.cli.options import (
    CANNOT_TRY,
    CRASHED,
    FileOptions,
    examples,
    file_options,
    in_processes,
    json_option,
    processes_option,
    quiet_option,
    say_what_runs,
    script_arguments,
    watch_options,
)
from harness.cli.output import STDOUT, Output, echo, say, stdout_on_stderr
from harness.settings import WatchOptions

if TYPE_CHECKING:
    from harness.describe.description import Description
    from harness.findings import Isolation
    from harness.starts.isolated import Place


@click.command(
    short_help="Run a training script and describe on one page what it did.",
    epilog=examples("harness describe train.py --epochs 1", "harness describe -m package.train"),
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@watch_options
@file_options
@processes_option
@quiet_option
@json_option("Also write the description to this file.")
@click.argument("script")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def describe(
    script: str,
    arguments: tuple[str, ...],
    options: WatchOptions,
    files: FileOptions,
    processes: int | None,
    quiet: bool,
    json_file: Path | None,
) -> None:
    """Run your training script unchanged and describe on one page what it did.

    The page says which rows the script read, what it trained, with which loss, optimizer and learning rates, when it
    evaluated, and what it saved. It leaves out what is not known.

    Long passes over a DataLoader are shortened, as in harness check, unless you give --full. With --processes, the page
    is about the first process; losses are the mean over all of them.

    Exit status: 0 the page was printed, 2 the script could not be run, 3 the script itself crashed.
    """
    output = Output(json_file, quiet, False, "text").from_here()
    if launch.is_main_process():
        output.check()
    if processes is not None:
        words = [*options.words(), *["--quiet"] * quiet, *(f"--json={each}" for each in [output.json_file] if each)]
        sys.exit(in_processes("describe", words, [script, *arguments], processes, files, module=options.module))
    arguments = script_arguments(script, arguments, module=options.module)
    restore = stdout_on_stderr()
    from harness.starts.apart import run

    def watched(place: Place, leaving: Callable[[Callable[[], Description]], int]) -> Description:
        from harness.describe import page

        return page.describe(place.script, place.arguments, options, leaving=leaving)

    def told(report: Description, isolation: Isolation) -> int:
        restore()
        report = replace(report, isolation=isolation)
        if report.crashed is not None:
            say(report.crashed, err=True)
        if launch.is_main_process():
            if not (quiet and json_file):
                echo(report.text(), err=json_file == STDOUT)
            echo(isolation.lines(quiet=quiet), err=True)
            output.write_json(json.dumps(report.as_dict(), indent=1))
        return CRASHED if report.crashed is not None else CANNOT_TRY if isolation.harmed else 0

    say_what_runs(script, files, shortened=not options.full, quiet=quiet)
    sys.exit(run(script, arguments, watched, told, **files.how(script, arguments, module=options.module)))
