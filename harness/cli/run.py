"""``harness run``"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness import launch
from harness.cli.options import (
    FOUND,
    baseline_folders,
    baselines_option,
    chosen_recipe,
    examples,
    folder_of,
    format_option,
    interruptible,
    json_option,
    quiet_option,
    recipe_options,
    verbose_option,
)
from harness.cli.output import Format, Output, say
from harness.errors import CannotTry

if TYPE_CHECKING:
    from harness.documented_run.stages import StageResult


@click.command(
    short_help="Run the documented steps, each with its checks, and train.",
    epilog=examples("harness run", "harness run --recipe minilm --data mrpc --loop accelerate"),
)
@recipe_options
@click.option(
    "--updates",
    type=click.IntRange(min=1),
    metavar="N",
    help="Stop training after N updates; the schedule is still planned for all of them.",
)
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="The folder for run.json and the fine-tuned model. [default: runs/RECIPE-LOOP-SEED-TIME]",
)
@click.option(
    "--installation",
    is_flag=True,
    help="Also measure what saves memory and time and, with --loop accelerate, every way to start train.py (a minute).",
)
@click.option(
    "--resume",
    is_flag=True,
    help="Continue the killed run in --output after its last complete epoch, or from its beginning if there is none.",
)
@quiet_option
@verbose_option
@format_option
@json_option("Also write the run record to this file.")
@baselines_option
@interruptible
def run(
    timeout: float,
    updates: int | None,
    output: Path | None,
    installation: bool,
    resume: bool,
    json_file: Path | None,
    format_: Format,
    quiet: bool,
    verbose: bool,
    baselines: Path | None,
    **options: Any,
) -> None:
    """Run the documented steps, each with its checks, and train.

    It stops at the first step whose checks fail, before it spends any updates.
    """
    recipe = chosen_recipe(**options)
    if installation and recipe.processes > 1:
        raise click.UsageError("--installation needs a single process: its measurements start their own.")
    if resume and output is None:
        raise click.UsageError("--resume continues the run in a folder: name it with --output.")
    output = output or folder_of(recipe)
    out = Output(json_file, quiet, verbose, format_)
    if quiet:
        # Before it is imported, and no longer than this command.
        click.get_current_context().with_resource(launch.with_environment({"TQDM_DISABLE": "1"}))

    from harness.documented_run.baseline.compare import compared
    from harness.documented_run.record import FILE_NAME
    from harness.documented_run.run import quiet_libraries, run_recipe
    from harness.report import log
    from harness.report.baseline import verdict_lines
    from harness.report.html.page import write_beside
    from harness.report.terminal import outcome_lines, recipe_line

    quiet_libraries()

    main_process = launch.is_main_process()
    if main_process:
        out.check()
        if not quiet:
            out.echo([recipe_line(recipe)])
    record = run_recipe(
        recipe,
        updates=updates,
        output=output,
        on_stage=partial(_show_stage, out),
        timeout=timeout,
        installation=installation,
        resume=resume,
    )
    if main_process:
        out.echo(() if quiet else outcome_lines(record, output, verbose=verbose))
        try:
            folder, fallback = baseline_folders(baselines)
            reasons = compared(folder, record, fallback=fallback, recipe=options["recipe"])
            out.echo(() if quiet else reasons)
            out.echo(verdict_lines(each for each in record.comparison if not quiet or each.outcome == "fails"))
            record.write(output / FILE_NAME)
            if failed := write_beside(output / FILE_NAME, record, baselines=folder, fallback=fallback):
                say(f"harness: {failed}", err=True)
        finally:
            out.write(record.as_json(), lambda: log.of_run(record))
    if record.interrupted:
        raise CannotTry(f"interrupted; the results so far are in {output}, and --resume continues from there")
    sys.exit(FOUND if record.failed else 0)


def _show_stage(out: Output, result: StageResult) -> None:
    """Print what a stage found; at module level, because workers import it."""
    from harness.report.terminal import stage_lines

    lines = stage_lines(result.stage, result.seconds, result.checks)
    found = (line for check in result.checks for finding in check.findings for line in finding.lines())
    out.echo(found if out.quiet else lines)
