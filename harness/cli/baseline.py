"""``harness baseline record``, ``compare``, ``show`` and ``accept``"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.cli.options import (
    FOUND,
    baseline_folders,
    baselines_option,
    chosen_recipe,
    folder_of,
    interruptible,
    json_option,
    on_option,
    recipe_options,
)
from harness.cli.output import Output, echo, say
from harness.errors import CannotTry

if TYPE_CHECKING:
    from harness.recipe import Recipe
    from harness.record import RunRecord
    from harness.spread import On


@click.group(short_help="Record runs, and compare new ones with them.")
def baseline() -> None:
    """Record runs, compare new ones with them, and accept what was recorded."""


@baseline.command(short_help="Train seeds and add them to a candidate.")
@click.argument("runs", nargs=-1, type=click.Path(path_type=Path))
@recipe_options
@click.option("--seeds", type=click.IntRange(min=1), metavar="K", help="How many seeds. [default: 1]")
@on_option
@baselines_option
@interruptible
def record(
    timeout: float, runs: tuple[Path, ...], seeds: int | None, on: On, baselines: Path | None, **options: Any
) -> None:
    """Train K seeds, from the recipe's own on, and add them to a candidate.

    Seeds that the candidate has are not trained again: an interrupted recording goes on where it was. Without training,
    RUNS that are there are added: run.json, the folders they lie in, candidates of other machines.
    """
    if runs:
        _check_nothing_to_train(options | {"seeds": seeds, "on": None if on == "here" else on})

    from harness.baseline import sessions
    from harness.baseline.review import acceptable
    from harness.baseline.stored import candidate_of
    from harness.report.baseline import next_lines
    from harness.report.terminal import metrics, recipe_line

    folder, _ = baseline_folders(baselines)
    if runs:
        candidates = []
        for path, of_it, candidate in sessions.record_runs(runs, folder):
            say(f"{path}: {', '.join(f'seed {seed}' for seed in of_it)}, added to {candidate}")
            candidates.append(candidate)
    else:
        recipe = chosen_recipe(**options)
        to_record, start = sessions.seeds_to_record(recipe, seeds or 1, folder, timeout=timeout, on=on)

        def to_train() -> Iterator[Recipe]:
            for each, recorded in to_record:
                say(recipe_line(each))
                if recorded:
                    say("  is in the candidate")
                else:
                    yield each

        for found, path in sessions.record_seeds(to_train(), folder, start=start, timeout=timeout, on=on):
            which = "" if on == "here" else f"seed {found.recipe['seed']}: "  # they come as they are done
            say(f"  {which}{metrics(found)}, added to {path}")
        candidates = [candidate_of(folder, start)]
    for candidate in dict.fromkeys(candidates):
        echo(next_lines(candidate, few=acceptable(folder, candidate), baselines=baselines))


@baseline.command(short_help="Compare runs with their baseline.")
@click.argument("runs", nargs=-1, type=click.Path(path_type=Path))
@click.option("--seeds", type=click.IntRange(min=1), metavar="K", help="Train K seeds that are new to the baseline.")
@recipe_options
@json_option("Also write the comparisons to this file.")
@baselines_option
@interruptible
def compare(
    timeout: float,
    runs: tuple[Path, ...],
    seeds: int | None,
    json_file: Path | None,
    baselines: Path | None,
    **options: Any,
) -> None:
    """Compare runs (run.json, or the folders they lie in) with their baseline; all of one recipe.

    With --seeds K new ones are trained for it: the recipe's own seed, and those after it, without the recorded. A
    candidate (candidates/NAME.json) is compared with the baseline that it would replace.
    """
    if bool(runs) == bool(seeds):
        raise click.UsageError("give the runs to compare, or --seeds K to train new ones.")
    if runs:
        _check_nothing_to_train(options)

    from harness.baseline.compare import baseline_of, compare
    from harness.baseline.review import candidate_verdicts, is_baseline
    from harness.baseline.stored import Baseline
    from harness.record import RunRecord
    from harness.report.baseline import verdict_lines, verdicts_json

    out = Output(json_file)
    out.check()
    folder, fallback = baseline_folders(baselines)
    if len(runs) == 1 and is_baseline(runs[0]):
        verdicts = candidate_verdicts(folder, runs[0], fallback=fallback)
    else:
        records = (
            _new_runs(chosen_recipe(**options), seeds, baselines, timeout, out)
            if seeds
            else [RunRecord.read(path) for path in runs]
        )
        verdicts = compare(Baseline.read(baseline_of(folder, records[0], fallback=fallback)), records)
    out.echo(verdict_lines(verdicts))
    out.write_json(verdicts_json(verdicts))
    sys.exit(FOUND if any(verdict.outcome == "fails" for verdict in verdicts) else 0)


def _check_nothing_to_train(options: dict[str, Any]) -> None:
    if given := [name for name, value in options.items() if value is not None]:
        raise click.UsageError(f"--{given[0]} says what to train; the runs that are there say so themselves.")


def _new_runs(recipe: Recipe, count: int, baselines: Path | None, timeout: float, out: Output) -> list[RunRecord]:
    from harness.baseline import sessions
    from harness.report.terminal import metrics, recipe_line

    records = []
    folder, fallback = baseline_folders(baselines)
    for each in sessions.seeds_to_compare(recipe, count, folder, timeout=timeout, fallback=fallback):
        output = folder_of(each)
        out.echo([recipe_line(each)])
        records.append(sessions.train_seed(each, output, timeout=timeout))
        out.echo([f"  {metrics(records[-1])}, written to {output}"])
    return records


@baseline.command(short_help="Show baselines and candidates, and what they can detect.")
@click.argument("name", required=False)
@json_option("Also write it to this file.")
@baselines_option
def show(name: str | None, json_file: Path | None, baselines: Path | None) -> None:
    """Show a baseline and its candidate: seeds, spread, and the smallest drops that 1, 3 and 5 new seeds can detect.

    Without NAME all of them, and what is wrong with any: broken files, recipes that are no longer so.
    """
    from harness.baseline.review import named, read, shown
    from harness.report.baseline import baseline_json, baseline_lines

    out = Output(json_file)
    out.check()
    folder, fallback = baseline_folders(baselines)
    if name is None and baselines is not None and not folder.is_dir():
        raise CannotTry(f"folder of baselines {folder} not found; choose another with --baselines")
    paths = [(path, None) for path in named(folder, name, fallback)] if name else shown(folder, fallback)
    told = []
    for path, wrong in paths:
        found = None if wrong else read(path)
        out.echo(baseline_lines(found) if found else [wrong or ""])
        told.append((path, wrong, found))
    out.write_json(baseline_json(told))
    sys.exit(FOUND if any(wrong for _, wrong, _ in told) else 0)


@baseline.command(short_help="Make a candidate the baseline.")
@click.argument("name")
@click.option("--reason", required=True, metavar="TEXT", help="Why it becomes the baseline; kept in the file.")
@baselines_option
def accept(name: str, reason: str, baselines: Path | None) -> None:
    """Make the candidate NAME the baseline; its file keeps the reason and the hash of the one that it replaces.

    What it is must be what it replaces: name, recipe and hardware class. Other data, weights or versions are said.
    """
    from harness.baseline.review import accept, changes

    folder, _ = baseline_folders(baselines)
    changed = changes(folder, name)
    path = accept(folder, name, reason)
    echo(f"  {each}" for each in changed)
    say(f"accepted as {path}")
