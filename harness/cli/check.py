"""``harness check``"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness import launch
from harness.cli.options import (
    CANNOT_TRY,
    CRASHED,
    FOUND,
    FileOptions,
    checks_option,
    examples,
    file_options,
    format_option,
    in_processes,
    interruptible,
    json_option,
    on_option,
    processes_option,
    quiet_option,
    say_what_runs,
    script_arguments,
    verbose_option,
    watch_options,
)
from harness.cli.output import STDOUT, Format, Output, echo, say, stdout_on_stderr
from harness.errors import CannotTry
from harness.settings import WatchOptions

if TYPE_CHECKING:
    from harness.findings import Isolation
    from harness.repairs.prove import Bench
    from harness.spread import On
    from harness.starts.isolated import Place
    from harness.watch.script import CheckReport


@click.command(
    short_help="Run a training script and name its silent bugs.",
    epilog=examples(
        "harness check train.py --epochs 1", "harness check -m package.train", "harness check --fix train.py"
    ),
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@watch_options
@file_options
@click.option("--strict", is_flag=True, help="Treat warnings as errors.")
@processes_option
@checks_option("--select", "Run only these checks (comma-separated ids or families).")
@checks_option("--ignore", "Ignore the findings of these checks.")
@click.option("--diff", is_flag=True, help="Print the edits that are proven to repair a finding, as a patch.")
@click.option("--fix", is_flag=True, help="Apply the edits that are proven to repair a finding.")
@click.option(
    "--receipt",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE.md",
    help="Also write a summary for a pull request, one screen of Markdown.",
)
@on_option
@quiet_option
@verbose_option
@format_option
@json_option("Also write the report to this file.")
@click.argument("script", required=False)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@interruptible
def check(
    script: str | None,
    arguments: tuple[str, ...],
    options: WatchOptions,
    files: FileOptions,
    strict: bool,
    processes: int | None,
    diff: bool,
    fix: bool,
    receipt: Path | None,
    on: On,
    json_file: Path | None,
    format_: Format,
    quiet: bool,
    verbose: bool,
) -> None:
    """Run your training script unchanged and name its silent bugs.

    Without SCRIPT, check every script listed under scripts in [tool.harness] of pyproject.toml, each in its own
    process, and return the highest exit status.

    You can also select and ignore checks in [tool.harness] (select, ignore), and ignore one on a line of the script:
    # harness: ignore[ID].

    --processes starts the script as torchrun does, on CPUs, and reports the findings of all ranks once. You can also
    check a script under your own launcher: torchrun … -m harness check.

    --diff and --fix try each edit that may repair a finding, in a copy of the working directory. An edit is offered
    only if the finding disappears, nothing new appears, and every check that passed still passes.

    Exit status: 0 nothing found (or only warnings, without --strict), 1 an error was found, 2 the script could not be
    run, or a check crashed and no error was found, 3 the script itself crashed. With --fix, a repaired error does not
    count.
    """
    _check_repairs(script, diff=diff, fix=fix, to_stdout=format_ != "text" or json_file == STDOUT, processes=processes)
    output = Output(json_file, quiet, verbose, format_, taken=diff, receipt=receipt)
    output = output.from_here()
    if launch.is_main_process():
        output.check()
    if script is None:
        if diff or fix or processes or receipt or files.keep or files.fresh:
            raise click.UsageError(
                "name the SCRIPT: --diff, --fix, --processes, --receipt, --keep and --fresh need one."
            )
        sys.exit(_check_all(options, files, strict, on, output))
    if on != "here":
        raise click.UsageError("--on ray runs the scripts listed in [tool.harness]: leave SCRIPT out.")
    if processes is not None:
        words = [*options.words(), *["--strict"] * strict, *output.options]
        sys.exit(in_processes("check", words, [script, *arguments], processes, files, module=options.module))
    arguments = script_arguments(script, arguments, module=options.module)
    restore = stdout_on_stderr() if output.err else None

    from harness.starts.apart import run

    def watched(place: Place, leaving: Callable[[Callable[[], CheckReport]], int]) -> CheckReport:
        from harness.describe.page import SECTIONS, worth_a_look
        from harness.settings import wants_unusual
        from harness.watch.script import check_script

        # With whole passes, what the page needs of each batch would make a script wait for its device.
        marked = not options.full and wants_unusual(None if options.module else Path(place.script), options)
        beside: dict[str, Any] = {"beside": SECTIONS, "also": worth_a_look} if marked else {}
        return check_script(place.script, place.arguments, options, leaving=leaving, **beside)

    with ExitStack() as stack:
        say_what_runs(script, files, shortened=not options.full, quiet=quiet)
        how = files.how(script, arguments, module=options.module)
        bench = stack.enter_context(_bench(script, arguments, options, output)) if diff or fix else None

        def told(report: CheckReport, isolation: Isolation) -> int:
            if restore is not None:
                restore()
            report = replace(report, script=script, isolation=isolation)
            words = [*["-m"] * options.module, script, *arguments]
            return _told(report, output, bench, words, diff=diff, fix=fix, strict=strict)

        sys.exit(run(script, arguments, watched, told, **how))


def _check_repairs(script: str | None, *, diff: bool, fix: bool, to_stdout: bool, processes: int | None) -> None:
    """Raises :class:`click.UsageError` where repairs are asked for beside what they do not go with."""
    if diff and to_stdout:
        raise click.UsageError("--diff writes its patch to stdout: name a file for --json, and no --format.")
    if (diff or fix) and processes:
        raise click.UsageError("--diff and --fix start the script in one process: leave --processes out.")
    if (diff or fix) and script is not None and script.endswith(".ipynb"):
        raise click.UsageError(
            "--diff and --fix cannot edit a notebook: leave them out, or write its code to a .py file first "
            f"(jupyter nbconvert --to script {script})."
        )


def _bench(
    script: str, arguments: Sequence[str], options: WatchOptions, output: Output
) -> AbstractContextManager[Bench]:
    """Where edits are tried: made before the script is run, which may change what lies in its folder."""
    from harness.repairs.prove import bench
    from harness.repairs.repair import all_repairs
    from harness.starts.workdir import no_progress

    all_repairs()  # what they need is said to be lacking now, and not after the script was run
    if (launch.world_size() or 1) > 1:
        raise CannotTry(
            "--fix and --diff start the script again themselves, in one process; start it without a launcher"
        )
    tell = no_progress if output.quiet else lambda line: say(f"  {line}", err=True)
    begins = tell if sys.stderr.isatty() else no_progress  # in a log nobody waits
    return bench(script, arguments, options, tell=tell, begins=begins)


def _told(
    report: CheckReport,
    output: Output,
    on: Bench | None,
    words: Sequence[str],
    *,
    diff: bool,
    fix: bool,
    strict: bool,
) -> int:
    """Print and write what a script came to; the exit status."""
    from harness.fingerprint import library_versions
    from harness.report import log
    from harness.report.check import outcome_lines, receipt_lines

    if report.crashed is not None:
        say(report.crashed, err=True)
    if launch.is_main_process():
        if not output.quiet or report.findings:
            say(err=True)  # the script's last line, a progress bar's say, may not have ended
        echo(outcome_lines(report, quiet=output.quiet, verbose=output.verbose), err=True)
        if on is not None and report.findings and report.crashed is None:
            _repair(report, on, diff=diff, fix=fix)
        output.write(json.dumps(report.as_dict(), indent=2), lambda: log.of_check(report))
        if output.receipt is not None:
            output.write_file(output.receipt, "\n".join(receipt_lines(report, library_versions(), words)))
    if report.crashed is not None:
        return CRASHED
    if not launch.is_main_process():
        return 0
    if report.isolation is not None and report.isolation.harmed:
        return CANNOT_TRY
    left = report.left if fix else report.findings
    failed = any(strict or each.severity == "error" for each in left)
    return FOUND if failed else CANNOT_TRY if report.incomplete else 0


def _repair(report: CheckReport, on: Bench, *, diff: bool, fix: bool) -> None:
    """Prove patches for what was found, print and write them.

    Raises:
        CannotTry: a file has been changed meanwhile, or cannot be written; or it was interrupted.
    """
    from harness.repairs.prove import prove
    from harness.report.check import patch_lines

    try:
        with launch.interrupted_once([signal.SIGTERM, signal.SIGINT]):
            proved = prove(on, report)
    except KeyboardInterrupt:
        raise CannotTry("interrupted while testing edits; nothing was written") from None
    report.patches = proved.patches
    if diff and proved.diff:
        say(proved.diff, nl=False)
    if fix:
        proved.write()
    echo(patch_lines(report, written=fix), err=True)


def _check_all(options: WatchOptions, files: FileOptions, strict: bool, on: On, output: Output) -> int:
    """Check the scripts of ``[tool.harness]``, in one directory one after the other; the highest exit status."""
    if options.module or (launch.world_size() or 1) > 1:
        raise click.UsageError("name the SCRIPT: without it, the scripts of [tool.harness] start, each in one process.")

    from harness.files import working_in
    from harness.report import log
    from harness.report.check import script_lines
    from harness.settings import scripts
    from harness.starts.isolated import shared
    from harness.watch.scripts import ScriptsReport, check_scripts

    folder, commands = scripts()
    words = [*options.words(), *files.words(), *["--strict"] * strict]
    report = ScriptsReport()
    with working_in(folder), ExitStack() as stack:
        if on == "here" and not files.in_place:
            directory = stack.enter_context(shared((os.path.realpath(folder),)))
            stack.enter_context(directory.entered())
        for checked in check_scripts(commands, words, on):
            echo(script_lines(checked, quiet=output.quiet, verbose=output.verbose), err=True)
            report.scripts.append(checked)
        output.write(json.dumps(report.as_dict(), indent=2), lambda: log.of_checks(report))
    return report.status
