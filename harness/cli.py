"""The command line: ``harness run`` and ``harness claims``.

Exit status: 0 all holds, 1 something was found, 2 it could not be tried.
"""

from __future__ import annotations

import sys
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness import __version__, launch
from harness.errors import CannotTry
from harness.launch import PATIENCE
from harness.recipe import DEFAULT_RECIPE, LOOPS, Recipe, load_recipe

if TYPE_CHECKING:
    from harness.stages import StageResult

FOUND, CANNOT_TRY = 1, 2


class _Group(click.Group):
    """Says :class:`CannotTry` in one sentence instead of a traceback."""

    def invoke(self, context: click.Context) -> Any:
        try:
            return super().invoke(context)
        except CannotTry as error:
            click.echo(f"harness: {error}", err=True)
        except KeyboardInterrupt:
            click.echo("harness: interrupted", err=True)
        sys.exit(CANNOT_TRY)


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="harness")
def main() -> None:
    """Does the documented fine-tuning recipe hold here?

    Exit status: 0 all holds, 1 something was found, 2 it could not be tried.
    """


@main.command()
@click.option(
    "--recipe",
    "spec",
    default=DEFAULT_RECIPE,
    show_default=True,
    metavar="NAME|FILE.py:OBJECT",
    help="What to train: tiny, minilm, bert-base, or a recipe of your own.",
)
@click.option(
    "--data",
    envvar="HARNESS_DATA",
    metavar="DIR",
    help="Read the corpus from this folder. [env: HARNESS_DATA, for recipes that are not built in]",
)
@click.option("--checkpoint", metavar="DIR|NAME", help="Start from this checkpoint.")
@click.option("--loop", type=click.Choice(LOOPS), help="Which documented loop to train with.")
@click.option(
    "--processes",
    type=click.IntRange(min=1),
    metavar="N",
    help="Train in N processes, one a GPU or all on CPUs; with --loop accelerate. [default: as a launcher started]",
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=1),
    default=PATIENCE,
    show_default=True,
    metavar="SECONDS",
    help="With several processes: end the run when one of them shows no sign of life for so long.",
)
@click.option("--seed", type=click.IntRange(min=0, max=2**32 - 1), help="Seed of head, dropout and shuffling.")
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
    "--json",
    "json_file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Also write the run record to this file.",
)
@click.pass_context
def run(
    context: click.Context,
    spec: str,
    data: str | None,
    checkpoint: str | None,
    loop: str | None,
    processes: int | None,
    timeout: float,
    seed: int | None,
    updates: int | None,
    output: Path | None,
    json_file: Path | None,
) -> None:
    """Run the documented steps, each with its checks, and train.

    Stops at the first step whose checks fail: before the updates are spent.
    """
    recipe = load_recipe(spec)
    from_environment = context.get_parameter_source("data") is click.core.ParameterSource.ENVIRONMENT
    if from_environment and recipe.data is not None:
        data = None
    loop = loop or recipe.loop
    if loop == "accelerate" and recipe.processes == 1:
        processes = processes or launch.world_size()
    recipe = changed(recipe, data=data, checkpoint=checkpoint, loop=loop, seed=seed, processes=processes)
    if output is None:
        output = Path("runs") / f"{recipe.name}-{recipe.loop}-{recipe.seed}-{datetime.now():%Y%m%d-%H%M%S}"

    from harness.report.terminal import outcome_lines, recipe_line
    from harness.run import check_writable, quiet_libraries, run_recipe

    quiet_libraries()

    main_process = launch.is_main_process()
    if json_file is not None and main_process:
        try:
            check_writable(json_file.absolute().parent)
        except OSError as error:
            raise CannotTry(f"{json_file} cannot be written ({error.strerror}); choose another with --json") from error
    if main_process:
        click.echo(recipe_line(recipe))
    record = run_recipe(recipe, updates=updates, output=output, on_stage=_show_stage, timeout=timeout)
    if main_process:
        _echo(outcome_lines(record, output))
        if json_file is not None:
            record.write(json_file)
    if record.interrupted:
        raise CannotTry(f"interrupted; what was measured until then is in {output}")
    sys.exit(FOUND if record.failed else 0)


@main.command()
def claims() -> None:
    """Print the documents' claims, and the checks that stand for them."""
    from harness.report.terminal import claims_lines
    from harness.stages import checks_of_claims

    _echo(claims_lines(checks_of_claims()))


def changed(recipe: Recipe, **changes: Any) -> Recipe:
    """The recipe with those changes that are not None.

    Raises:
        CannotTry: a value that no run can have.
    """
    try:
        return recipe.with_(**{name: value for name, value in changes.items() if value is not None})
    except ValueError as error:
        raise CannotTry(f"recipe {recipe.name}: {error}") from error


def _show_stage(result: StageResult) -> None:
    """In a module, so that a process of its own can be told to call it."""
    from harness.report.terminal import stage_lines

    _echo(stage_lines(result.stage, result.seconds, result.checks))


def _echo(lines: Any) -> None:
    for line in lines:
        click.echo(line)
