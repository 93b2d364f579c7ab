"""``harness check``"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness import launch
from harness.cli.options import (
    CANNOT_TRY,
    CRASHED,
    FOUND,
    checks_option,
    json_option,
    quiet_option,
    verbose_option,
)
from harness.cli.output import Output, echo, say
from harness.errors import CannotTry

if TYPE_CHECKING:
    from harness.watch.script import CheckReport


@click.command(
    short_help="Run a training script and name the silent bug in it.",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.option("--updates", type=click.IntRange(min=1), metavar="N", help="End the script after N updates.")
@click.option("--full", is_flag=True, help="Go through every pass over a DataLoader to its end.")
@checks_option("--select", "Run these checks only: ids or families, by comma.")
@checks_option("--ignore", "Leave these checks out of what counts.")
@click.option("-m", "module", is_flag=True, help="SCRIPT is a module's name, as with python -m.")
@quiet_option
@verbose_option
@json_option("Also write what was found to this file.")
@click.argument("script")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def check(
    script: str,
    arguments: tuple[str, ...],
    updates: int | None,
    full: bool,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    module: bool,
    json_file: Path | None,
    quiet: bool,
    verbose: bool,
) -> None:
    """Run a training script of your own, as it is, and name the silent bug in it.

    Which checks are wanted can also be said in [tool.harness] of pyproject.toml (select, ignore), and on a line of the
    script: # harness: ignore[ID].

    Exit status: 0 nothing found (or warnings only), 1 an error was found, 2 could not run, or a check could not look
    and no error was found, 3 the script itself crashed.
    """
    output = Output(json_file, quiet, verbose)
    if launch.is_main_process():
        output.check()

    from harness.files import working_in
    from harness.watch.script import check_script

    folder = Path.cwd()

    def told(report: CheckReport) -> int:
        with working_in(folder):  # the script may have gone to another
            return _told(report, output)

    def leaving(outcome: Callable[[], CheckReport]) -> int:
        try:
            return told(outcome())
        except CannotTry as error:
            say(f"harness: {error}", err=True)
            return CANNOT_TRY

    sys.exit(
        told(
            check_script(
                script,
                arguments,
                module=module,
                updates=updates,
                full=full,
                select=select,
                ignore=ignore,
                leaving=leaving,
            )
        )
    )


def _told(report: CheckReport, output: Output) -> int:
    """Print and write what a script came to; the exit status."""
    from harness.report import annotations
    from harness.report.check import outcome_lines

    if report.crashed is not None:
        say(report.crashed, err=True)
    if launch.is_main_process():
        if not output.quiet or report.findings:
            say(err=True)  # the script's last line, a progress bar's say, may not have ended
        echo(outcome_lines(report, quiet=output.quiet, verbose=output.verbose), err=True)
        if annotations.running_in_github_actions():
            output.echo(annotations.of_findings(report.findings))
        output.write_json(json.dumps(report.as_dict(), indent=2))
    if report.crashed is not None:
        return CRASHED
    if not launch.is_main_process():
        return 0
    return FOUND if report.failed else CANNOT_TRY if report.incomplete else 0
