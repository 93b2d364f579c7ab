"""The command line: ``harness run``, ``check``, ``baseline``, ``documents``, ``matrix`` and ``claims``.

Exit status: 0 all holds, 1 something was found, 2 it could not be tried, 3 the checked script itself crashed.
"""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness import __version__, launch
from harness.errors import CannotTry
from harness.launch import PATIENCE
from harness.recipe import DEFAULT_RECIPE, LOOPS, RECIPES, Recipe, load_recipe

if TYPE_CHECKING:
    from harness.record import RunRecord
    from harness.stages import StageResult

FOUND, CANNOT_TRY, CRASHED = 1, 2, 3


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
    """Does the documented fine-tuning recipe hold here, and is a training loop of your own right?

    Exit status: 0 all holds, 1 something was found, 2 it could not be tried.
    """


RECIPE_OPTIONS = (
    click.option(
        "--recipe",
        "spec",
        default=DEFAULT_RECIPE,
        show_default=True,
        metavar="NAME|FILE.py:OBJECT",
        help=f"What to train: {', '.join(RECIPES)}, or a recipe of your own.",
    ),
    click.option(
        "--data",
        envvar="HARNESS_DATA",
        metavar="DIR",
        help="Read the corpus from this folder. [env: HARNESS_DATA, for recipes that are not built in]",
    ),
    click.option("--checkpoint", metavar="DIR|NAME", help="Start from this checkpoint."),
    click.option("--loop", type=click.Choice(LOOPS), help="Which documented loop to train with."),
    click.option(
        "--processes",
        type=click.IntRange(min=1),
        metavar="N",
        help="Train in N processes, one a GPU or all on CPUs; with --loop accelerate. [default: as a launcher started]",
    ),
    click.option(
        "--timeout",
        type=click.FloatRange(min=1),
        default=PATIENCE,
        show_default=True,
        metavar="SECONDS",
        help="With several processes: end the run when one of them shows no sign of life for so long.",
    ),
    click.option("--seed", type=click.IntRange(min=0, max=2**32 - 1), help="Seed of head, dropout and shuffling."),
)


def recipe_options(
    command: Callable[..., None], options: Sequence[Callable[..., Any]] = RECIPE_OPTIONS
) -> Callable[..., None]:
    """The options that say what to train, for the commands that train; they get the recipe and the timeout."""

    @functools.wraps(command)
    def with_recipe(
        spec: str,
        data: str | None,
        checkpoint: str | None,
        loop: str | None = None,
        processes: int | None = None,
        seed: int | None = None,
        **others: Any,
    ) -> None:
        recipe = load_recipe(spec)
        source = click.get_current_context().get_parameter_source("data")
        if source is click.core.ParameterSource.ENVIRONMENT and recipe.data is not None:
            data = None
        loop = loop or recipe.loop
        if loop == "accelerate" and recipe.processes == 1:
            processes = processes or launch.world_size()
        recipe = changed(recipe, data=data, checkpoint=checkpoint, loop=loop, seed=seed, processes=processes)
        command(recipe=recipe, **others)

    with_options: Callable[..., None] = with_recipe
    for option in reversed(options):
        with_options = option(with_options)
    return with_options


source_options = functools.partial(recipe_options, options=RECIPE_OPTIONS[:3])
"""Those of them that say where data and checkpoint come from."""


baselines_option = click.option(
    "--baselines",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("baselines"),
    show_default=True,
    metavar="DIR",
    help="The folder of the baselines.",
)


def json_option(says: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    return click.option(
        "--json", "json_file", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help=says
    )


def check_json(file: Path) -> None:
    """Whether ``--json`` can be written: known before the time is spent.

    Raises:
        CannotTry: it cannot.
    """
    from harness.record import check_writable

    try:
        check_writable(file.absolute().parent)
    except OSError as error:
        raise CannotTry(f"{file} cannot be written ({error.strerror}); choose another") from error


@main.command()
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
@json_option("Also write the run record to this file.")
@baselines_option
def run(
    recipe: Recipe,
    timeout: float,
    updates: int | None,
    output: Path | None,
    json_file: Path | None,
    baselines: Path,
) -> None:
    """Run the documented steps, each with its checks, and train.

    Stops at the first step whose checks fail: before the updates are spent.
    """
    output = output or run_folder(recipe)

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
    record = run_recipe(recipe, updates=updates, output=output, on_stage=_show_stage, timeout=timeout)
    if main_process:
        _echo(outcome_lines(record, output))
        if annotations.wanted():
            _echo(annotations.of_findings(record.findings))
        try:
            _echo(compared(baselines, record))
            _echo(verdict_lines(record.comparison))
            record.write(output / FILE_NAME)
        finally:
            if json_file is not None:
                record.write(json_file)
    if record.interrupted:
        raise CannotTry(f"interrupted; what was measured until then is in {output}")
    sys.exit(FOUND if record.failed else 0)


@main.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("--updates", type=click.IntRange(min=1), metavar="N", help="End the script after N updates.")
@click.option("--full", is_flag=True, help="Go through every pass over a DataLoader to its end.")
@click.option("--ignore", multiple=True, metavar="CHECK", help="Leave this check out; can be given several times.")
@click.option("-m", "module", is_flag=True, help="SCRIPT is a module's name, as with python -m.")
@json_option("Also write what was found to this file.")
@click.argument("script")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def check(
    script: str,
    arguments: tuple[str, ...],
    updates: int | None,
    full: bool,
    ignore: tuple[str, ...],
    module: bool,
    json_file: Path | None,
) -> None:
    """Run a training script of your own, as it is, and name the silent bug in it.

    Exit status: 0 nothing found (or warnings only), 1 an error was found, 2 it could not be tried, 3 the script itself
    crashed.
    """
    if json_file is not None and launch.is_main_process():
        check_json(json_file)

    from harness.record import write_atomically
    from harness.report import annotations
    from harness.report.check import outcome_lines
    from harness.watch.script import check_script

    watched = check_script(script, arguments, module=module, updates=updates, full=full, ignore=ignore)
    if not launch.is_main_process():
        if watched.crashed is not None:
            click.echo(watched.crashed, err=True)
        sys.exit(CRASHED if watched.crashed is not None else 0)
    if json_file is not None:
        write_atomically(json_file, json.dumps(watched.as_dict(), indent=2) + "\n")
    if watched.crashed is not None:
        click.echo(watched.crashed, err=True)
    _echo(outcome_lines(watched))
    if annotations.wanted():
        _echo(annotations.of_findings(watched.findings))
    if watched.crashed is not None:
        sys.exit(CRASHED)
    sys.exit(FOUND if watched.failed else 0)


@main.group()
def baseline() -> None:
    """Record runs, compare new ones with them, and accept what was recorded."""


@baseline.command()
@recipe_options
@click.option("--seeds", type=click.IntRange(min=1), default=1, show_default=True, metavar="K", help="How many seeds.")
@baselines_option
def record(recipe: Recipe, timeout: float, seeds: int, baselines: Path) -> None:
    """Train K seeds, from the recipe's own on, and add them to a candidate.

    Seeds that the candidate has are not trained again: an interrupted recording goes on where it was.
    """
    if launch.world_size() is not None:
        raise CannotTry("record starts its processes itself; give it --processes instead of a launcher")
    from harness.baseline.stored import add, recorded_already
    from harness.report.terminal import recipe_line
    from harness.run import begun, quiet_libraries, run_recipe

    quiet_libraries()
    there = recorded_already(baselines, begun(recipe, timeout=timeout))
    for number in range(recipe.seed, recipe.seed + seeds):
        each = recipe.with_(seed=number)
        click.echo(recipe_line(each))
        if number in there:
            click.echo("  is in the candidate")
            continue
        found = run_recipe(each, timeout=timeout)
        if found.interrupted:
            raise CannotTry(f"interrupted; the seeds before {number} are in the candidate")
        path = add(baselines, found)
        click.echo(f"  {_metrics(found)}, added to {path}")


@baseline.command()
@click.argument("runs", nargs=-1, type=click.Path(path_type=Path))
@click.option("--seeds", type=click.IntRange(min=1), metavar="K", help="Train K seeds that are new to the baseline.")
@recipe_options
@baselines_option
def compare(recipe: Recipe, timeout: float, runs: tuple[Path, ...], seeds: int | None, baselines: Path) -> None:
    """Compare runs (run.json, or the folders they lie in) with their baseline; all of one recipe.

    With --seeds K new ones are trained for it: the recipe's own seed, and those after it, without the recorded. A
    candidate (candidates/NAME.json) is compared with the baseline that it would replace.
    """
    from harness.baseline.compare import baseline_of, compare
    from harness.baseline.review import candidate_verdicts, is_baseline
    from harness.baseline.stored import Baseline
    from harness.record import RunRecord
    from harness.report.baseline import verdict_lines

    if bool(runs) == bool(seeds):
        raise click.UsageError("give the runs to compare, or --seeds K to train new ones.")
    context = click.get_current_context()
    given = [
        option.opts[0]
        for option in context.command.params
        if option.name not in ("runs", "seeds", "timeout", "baselines")
        and context.get_parameter_source(str(option.name)) is click.core.ParameterSource.COMMANDLINE
    ]
    if runs and given:
        raise click.UsageError(f"{given[0]} says what to train; the runs that are there say so themselves.")
    if len(runs) == 1 and is_baseline(runs[0]):
        verdicts = candidate_verdicts(baselines, runs[0])
    else:
        records = [RunRecord.read(path) for path in runs] or _new_seeds(recipe, seeds or 0, baselines, timeout)
        verdicts = compare(Baseline.read(baseline_of(baselines, records[0])), records)
    _echo(verdict_lines(verdicts))
    sys.exit(FOUND if any(verdict.outcome == "fails" for verdict in verdicts) else 0)


def _new_seeds(recipe: Recipe, count: int, baselines: Path, timeout: float) -> list[RunRecord]:
    """Train seeds that the baseline does not have; each is kept like a run of its own.

    Raises:
        CannotTry: there is no such baseline, it is of something else, or a run found something or was interrupted.
    """
    if launch.world_size() is not None:
        raise CannotTry("compare starts its processes itself; give it --processes instead of a launcher")
    from harness.baseline.compare import baseline_of, comparable
    from harness.baseline.stored import Baseline, seed_run
    from harness.report.terminal import recipe_line
    from harness.run import begun, quiet_libraries, run_recipe

    quiet_libraries()
    start = begun(recipe, timeout=timeout)
    baseline = Baseline.read(baseline_of(baselines, start))
    comparable(baseline, start)
    records = []
    for seed in baseline.new_seeds(recipe.seed, count):
        each = recipe.with_(seed=seed)
        output = run_folder(each)
        click.echo(recipe_line(each))
        records.append(run_recipe(each, output=output, timeout=timeout))
        if records[-1].interrupted:
            raise CannotTry("interrupted; the seeds before can be compared from their folders")
        seed_run(records[-1])
        click.echo(f"  {_metrics(records[-1])}, written to {output}")
    return records


@baseline.command()
@click.argument("name", required=False)
@baselines_option
def show(name: str | None, baselines: Path) -> None:
    """Show a baseline: its seeds, its spread, and the drops that 1, 3 and 5 new seeds would show.

    Without NAME all of them, and what is wrong with any: broken files, recipes that are no longer so.
    """
    from harness.baseline.files import baseline_path
    from harness.baseline.review import read, stale, stored_files
    from harness.report.baseline import baseline_lines

    if name is not None:
        _echo(baseline_lines(read(baseline_path(baselines, name))))
        return
    if not baselines.is_dir():
        raise CannotTry(f"folder of baselines {baselines} not found; choose another with --baselines")
    wrong = stale(baselines)
    for path in stored_files(baselines):
        _echo([wrong[path]] if path in wrong else baseline_lines(read(path)))
    sys.exit(FOUND if wrong else 0)


@baseline.command()
@click.argument("name")
@click.option("--reason", required=True, metavar="TEXT", help="Why it becomes the baseline; kept in the file.")
@baselines_option
def accept(name: str, reason: str, baselines: Path) -> None:
    """Make the candidate NAME the baseline; its file keeps the reason and the hash of the one that it replaces."""
    from harness.baseline.review import accept

    click.echo(f"accepted as {accept(baselines, name, reason)}")


@main.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@source_options
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Where documents.json goes. [default: runs/documents-TIME]",
)
def documents(folder: Path, recipe: Recipe, output: Path | None) -> None:
    """Run the code blocks of the documents in FOLDER (*.txt, *.md) as they are printed.

    The recipe says with which corpus and tokenizer; the model is a small random BERT, and nothing is fetched. Exit
    status 1 where a block fails as printed.
    """
    from harness.documents.run import run_documents
    from harness.matrix import DOCUMENTS_FILE
    from harness.record import write_atomically
    from harness.report import annotations
    from harness.report.documents import block_line, outcome_lines
    from harness.run import quiet_libraries

    output = output or Path("runs") / f"documents-{datetime.now():%Y%m%d-%H%M%S}"
    with suppress(OSError):  # which check_json says better
        output.mkdir(parents=True, exist_ok=True)
    check_json(output / DOCUMENTS_FILE)
    quiet_libraries()
    record = run_documents(folder, recipe, on_block=lambda block: click.echo(block_line(block)))
    write_atomically(output / DOCUMENTS_FILE, record.model_dump_json(indent=1) + "\n")
    _echo(outcome_lines(record, output))
    for block in record.blocks if annotations.wanted() else ():
        _echo(annotations.of_block(block, str(folder / block.file)))
    sys.exit(FOUND if any(block.outcome == "fails" for block in record.blocks) else 0)


@main.command()
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--all", "everything", is_flag=True, help="Also the rows that are as documented on all versions.")
@click.option(
    "--markdown",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Also write it as Markdown: between the marks of a file that has them, such as README.md, or as a file.",
)
@json_option("Also write it as JSON; baselines/matrix.json is the recorded one.")
@baselines_option
def matrix(
    runs: tuple[Path, ...], everything: bool, markdown: Path | None, json_file: Path | None, baselines: Path
) -> None:
    """Lay run records of several library versions side by side: claims and checks, and the documents' code.

    RUNS are records (run.json, documents.json) or folders that hold some. A cell that is not what baselines/matrix.json
    has is marked. Exit status 1 where there is one.
    """
    from harness.matrix import Matrix, matrix_of, records_below
    from harness.report import annotations
    from harness.report.matrix import markdown_lines, matrix_lines, write_markdown
    from harness.stages import sentences

    for file in filter(None, (markdown, json_file)):
        check_json(file)
    if json_file is not None and json_file.exists():
        Matrix.read(json_file)  # anything else is not overwritten
    found = matrix_of(records_below(runs), sentences())
    path = baselines / "matrix.json"
    comparison = found.against(Matrix.read(path)) if path.exists() else None
    changes = comparison.changes if comparison else ()
    _echo(matrix_lines(found, comparison, everything=everything))
    if annotations.wanted():
        _echo(annotations.of_changes(changes))
    if markdown is not None:
        write_markdown(markdown, markdown_lines(found, comparison, everything=everything))
    if json_file is not None:
        found.write(json_file)
    sys.exit(FOUND if changes else 0)


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


def run_folder(recipe: Recipe) -> Path:
    """Where a run is kept, if nobody says: no two of them."""
    return Path("runs") / f"{recipe.name}-{recipe.loop}-{recipe.seed}-{datetime.now():%Y%m%d-%H%M%S}"


def _metrics(record: RunRecord) -> str:
    return ", ".join(f"{name} {value:.4f}" for name, value in record.metrics.items())


def _show_stage(result: StageResult) -> None:
    """In a module, so that a process of its own can be told to call it."""
    from harness.report.terminal import stage_lines

    _echo(stage_lines(result.stage, result.seconds, result.checks))


def _echo(lines: Any) -> None:
    for line in lines:
        click.echo(line)
