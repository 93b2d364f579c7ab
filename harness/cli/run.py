"""``harness run``"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness import launch
from harness.cli.options import (
    FOUND,
    baseline_folders,
    baselines_option,
    check_json,
    chosen_recipe,
    echo,
    folder_of,
    interruptible,
    json_option,
    recipe_options,
)
from harness.errors import CannotTry

if TYPE_CHECKING:
    from harness.stages import StageResult


@click.command()
@recipe_options
@click.option(
    "--updates",
    type=click.IntRange(min=1),
    metavar="N",
    help="Stop training after N updates; the schedule stays planned for all of them.",
)
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Where run.json and the fine-tuned model go. [default: runs/RECIPE-LOOP-SEED-TIME]",
)
@click.option(
    "--installation",
    is_flag=True,
    help="Also measure what saves memory and time, and under --loop accelerate start train.py in each way: a minute.",
)
@click.option(
    "--resume",
    is_flag=True,
    help="Go on with the run in --output, which was killed: after its last whole epoch, or from its beginning.",
)
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
    baselines: Path | None,
    **options: Any,
) -> None:
    """Run the documented steps, each with its checks, and train.

    Stops at the first step whose checks fail: before the updates are spent.
    """
    recipe = chosen_recipe(**options)
    if installation and recipe.processes > 1:
        raise click.UsageError("--installation goes with one process: what it measures starts its own.")
    if resume and output is None:
        raise click.UsageError("--resume goes on with the run in a folder: name it with --output.")
    output = output or folder_of(recipe)

    from harness.baseline.compare import compared
    from harness.record import FILE_NAME
    from harness.report import annotations
    from harness.report.baseline import verdict_lines
    from harness.report.terminal import outcome_lines, recipe_line
    from harness.run import quiet_libraries, run_recipe

    quiet_libraries()

    main_process = launch.is_main_process()
    if json_file is not None and main_process:
        check_json(json_file)
    if main_process:
        click.echo(recipe_line(recipe))
    record = run_recipe(
        recipe,
        updates=updates,
        output=output,
        on_stage=_show_stage,
        timeout=timeout,
        installation=installation,
        resume=resume,
    )
    if main_process:
        echo(outcome_lines(record, output))
        if annotations.running_in_github_actions():
            echo(annotations.of_findings(record.findings))
        try:
            folder, fallback = baseline_folders(baselines)
            echo(compared(folder, record, fallback=fallback))
            echo(verdict_lines(record.comparison))
            record.write(output / FILE_NAME)
        finally:
            if json_file is not None:
                record.write(json_file)
    if record.interrupted:
        raise CannotTry(f"interrupted; what was measured until then is in {output}, and --resume goes on with it")
    sys.exit(FOUND if record.failed else 0)


def _show_stage(result: StageResult) -> None:
    """In a module, so that a process of its own can be told to call it."""
    from harness.report.terminal import stage_lines

    echo(stage_lines(result.stage, result.seconds, result.checks))
