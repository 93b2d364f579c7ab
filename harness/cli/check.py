"""``harness check``"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness import launch
from harness.cli.options import (
    CANNOT_TRY,
    CRASHED,
    FOUND,
    checks_option,
    format_option,
    json_option,
    quiet_option,
    verbose_option,
)
from harness.cli.output import Format, Output, echo, say, stdout_on_stderr
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
@format_option
@json_option("Also write what was found to this file.")
@click.argument("script", required=False)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def check(
    script: str | None,
    arguments: tuple[str, ...],
    updates: int | None,
    full: bool,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    module: bool,
    json_file: Path | None,
    format_: Format,
    quiet: bool,
    verbose: bool,
) -> None:
    """Run a training script of your own, as it is, and name the silent bug in it. Without SCRIPT those that
    [tool.harness] of pyproject.toml names (scripts), each in a process of its own; the exit status is the highest.

    Which checks are wanted can also be said in [tool.harness] of pyproject.toml (select, ignore), and on a line of the
    script: # harness: ignore[ID].

    Exit status: 0 nothing found (or warnings only), 1 an error was found, 2 could not run, or a check could not look
    and no error was found, 3 the script itself crashed.
    """
    output = Output(json_file, quiet, verbose, format_)
    if launch.is_main_process():
        output.check()
    if script is None:
        sys.exit(_check_all(module, updates, full, select, ignore, output))
    restore = stdout_on_stderr() if output.err else None

    from harness.files import working_in
    from harness.watch.script import check_script

    folder = Path.cwd()

    def told(report: CheckReport) -> int:
        if restore is not None:
            restore()
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
    from harness.report import annotations, sarif
    from harness.report.check import outcome_lines

    if report.crashed is not None:
        say(report.crashed, err=True)
    if launch.is_main_process():
        if not output.quiet or report.findings:
            say(err=True)  # the script's last line, a progress bar's say, may not have ended
        echo(outcome_lines(report, quiet=output.quiet, verbose=output.verbose), err=True)
        found = annotations.of_findings(report.findings)
        output.write(json.dumps(report.as_dict(), indent=2), found, partial(sarif.of_check, report))
    if report.crashed is not None:
        return CRASHED
    if not launch.is_main_process():
        return 0
    return FOUND if report.failed else CANNOT_TRY if report.incomplete else 0


def _check_all(
    module: bool, updates: int | None, full: bool, select: tuple[str, ...], ignore: tuple[str, ...], output: Output
) -> int:
    """Check the scripts of ``[tool.harness]``; the highest of their exit statuses."""
    if module or (launch.world_size() or 1) > 1:
        raise click.UsageError("name the SCRIPT: those of [tool.harness] are started without it, each in one process.")

    from harness.files import working_in
    from harness.report import annotations, sarif
    from harness.report.check import script_lines
    from harness.settings import scripts
    from harness.watch.scripts import ScriptsReport, check_scripts

    folder, commands = scripts()
    options = [f"--updates={updates}"] * (updates is not None) + ["--full"] * full
    options += [*(f"--select={each}" for each in select), *(f"--ignore={each}" for each in ignore)]
    output, report = output.from_here(), ScriptsReport()
    with launch.interrupted_once(launch.interrupting()), working_in(folder):
        for each in check_scripts(commands, options):
            echo(script_lines(each, quiet=output.quiet, verbose=output.verbose), err=True)
            report.scripts.append(each)
        found = annotations.of_findings(report.findings)
        output.write(json.dumps(report.as_dict(), indent=2), found, partial(sarif.of_checks, report))
    return report.status
