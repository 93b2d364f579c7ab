"""``harness baseline record``, ``compare``, ``show`` and ``accept``"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.cli.options import (
    FOUND,
    baseline_folders,
    baselines_option,
    chosen_recipe,
    examples,
    folder_of,
    interruptible,
    json_option,
    on_option,
    recipe_options,
)
from harness.cli.output import Output, echo, say
from harness.errors import CannotTry

if TYPE_CHECKING:
    from harness.documented_run.recipe import Recipe
    from harness.documented_run.record import RunRecord
    from harness.settings import Training
    from harness.spread import On


@click.group(short_help="Record runs and compare new ones with them.")
def baseline() -> None:
    """Record runs, compare new ones with them, and accept what was recorded."""


def _trainings(
    names: Sequence[Path], *, all_of_them: bool = False, or_others: bool = False
) -> tuple[Path, Sequence[Training]] | None:
    """The trainings of ``[[tool.harness.training]]`` with these names, and the folder to start them in; None if these
    are none.

    Raises:
        CannotTry: some are, and others not; or, without ``or_others``, one can be nothing else, where there are some.
    """
    from harness.settings import trainings

    if not names and not all_of_them:
        return None
    folder, known = trainings()
    by_name = {each.name: each for each in known}
    wrong = [name for name in names if str(name) not in by_name]
    if not known or (wrong == list(names) and wrong and (or_others or all(map(_may_be_of_a_recipe, wrong)))):
        return None
    if wrong:
        raise CannotTry(f"no training {wrong[0]}; there are {', '.join(by_name)}")
    return folder, [by_name[str(name)] for name in names] or known


def _may_be_of_a_recipe(name: Path) -> bool:
    """Whether it is, or is written as, a run record, a folder or the baseline of a recipe (tiny-plain-cpu)."""
    return name.exists() or len(name.parts) > 1 or name.suffix != "" or "-" in str(name)


def _of_trainings(folder: Path, baselines: Path | None) -> Path:
    return baselines or folder / "baselines"


def _record_trainings(folder: Path, of_scripts: Sequence[Training], baselines: Path | None) -> None:
    from harness.baseline import training_file, trainings

    for script in of_scripts:
        path = training_file.path_of(_of_trainings(folder, baselines), script.name)
        if path.exists():
            training_file.read(path, script.name)  # nobody else's file is overwritten
        stored, run = trainings.record(script, folder, tell=partial(say, err=True))
        training_file.write(path, stored, script.name)
        slow = "; a smaller setting makes a better test" if run.seconds > trainings.SLOW else ""
        say(
            f"{script.name}: {len(stored.facts)} facts of {run.updates} updates in {run.seconds:.0f} s{slow}, in {path}"
        )
        if varying := [key for key, value in stored.facts.items() if value == training_file.VARIES]:
            say(f"  differ from run to run, and are not compared: {', '.join(varying[:6])}; is the script seeded?")


def _compare_trainings(
    folder: Path, of_scripts: Sequence[Training], baselines: Path | None, out: Output, observed: Path | None
) -> int:
    from harness import settings
    from harness.baseline import training_file, trainings
    from harness.report.trainings import verdict_lines

    out.check()
    report = trainings.TrainingsReport()
    where = _of_trainings(folder, baselines)
    if observed is not None and observed.resolve() == where.resolve():
        raise click.UsageError("--observed is the folder of the baselines: they would be overwritten; give another.")
    for script in of_scripts:
        stored = training_file.read(training_file.path_of(where, script.name), script.name)
        seen = None if observed is None else training_file.path_of(observed, script.name)
        report.trainings.append(trainings.compare(script, folder, stored, seen))
        out.echo(verdict_lines(report.trainings[-1]))
    report.left_over = [str(path) for path in training_file.left_over(where, settings.trainings(folder)[1])]
    out.echo(f"{path} is of a training that pyproject.toml no longer names: delete it" for path in report.left_over)
    out.write_json(json.dumps(report.as_dict(), indent=1))
    return FOUND if report.failed else 0


@baseline.command(
    short_help="Train seeds and add them to a candidate baseline.",
    epilog=examples("harness baseline record --recipe tiny --seeds 3", "harness baseline record sft"),
)
@click.argument("runs", nargs=-1, type=click.Path(path_type=Path))
@recipe_options
@click.option("--seeds", type=click.IntRange(min=1), metavar="K", help="Number of seeds. [default: 1]")
@on_option
@baselines_option
@interruptible
def record(
    timeout: float, runs: tuple[Path, ...], seeds: int | None, on: On, baselines: Path | None, **options: Any
) -> None:
    """Train K seeds, starting with the recipe's own, and add them to a candidate baseline.

    Seeds that the candidate already has are not trained again, so an interrupted recording continues where it stopped.
    Given RUNS (run.json, or its folder, or candidates from other machines), add those and train nothing.

    Given names of [[tool.harness.training]], run each of those scripts twice (three times if the two runs differ), and
    write what it does to baselines/NAME.txt, one fact per line.
    """
    if of_scripts := _trainings(runs):
        _check_nothing_to_train(options | {"seeds": seeds, "on": None if on == "here" else on})
        _record_trainings(*of_scripts, baselines)
        return
    if runs:
        _check_nothing_to_train(options | {"seeds": seeds, "on": None if on == "here" else on})

    from harness.documented_run.baseline import sessions
    from harness.documented_run.baseline.review import acceptable
    from harness.documented_run.baseline.stored import candidate_of
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
            for seed, recorded in to_record:
                say(recipe_line(seed))
                if recorded:
                    say("  is in the candidate")
                else:
                    yield seed

        for found, path in sessions.record_seeds(to_train(), folder, start=start, timeout=timeout, on=on):
            which = "" if on == "here" else f"seed {found.recipe['seed']}: "  # they come as they are done
            say(f"  {which}{metrics(found)}, added to {path}")
        candidates = [candidate_of(folder, start)]
    for candidate in dict.fromkeys(candidates):
        echo(next_lines(candidate, few=acceptable(folder, candidate), baselines=baselines))


@baseline.command(
    short_help="Compare runs with their baseline.",
    epilog=examples("harness baseline compare runs/mine", "harness baseline compare sft"),
)
@click.argument("runs", nargs=-1, type=click.Path(path_type=Path))
@click.option("--seeds", type=click.IntRange(min=1), metavar="K", help="Train K seeds that are new to the baseline.")
@recipe_options
@json_option("Also write the comparisons to this file.")
@click.option(
    "--observed",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Also write what each training did to FOLDER/NAME.txt.",
)
@baselines_option
@interruptible
def compare(
    timeout: float,
    runs: tuple[Path, ...],
    seeds: int | None,
    json_file: Path | None,
    observed: Path | None,
    baselines: Path | None,
    **options: Any,
) -> None:
    """Compare runs of one recipe (run.json, or its folder) with their baseline.

    Given names of [[tool.harness.training]], run those scripts and compare them with baselines/NAME.txt. Without RUNS,
    do so for all of them. --observed FOLDER writes what they do in the same form, so that diff shows what differs.

    --seeds K trains K new runs to compare: the recipe's own seed and the following ones, except those already recorded.
    Given a candidate (candidates/NAME.json), compare it with the baseline that it would replace.
    """
    of_scripts = _trainings(runs, all_of_them=not runs and not seeds)
    if of_scripts:
        _check_nothing_to_train(options | {"seeds": seeds})
        sys.exit(_compare_trainings(*of_scripts, baselines, Output(json_file), observed))
    if observed is not None:
        raise click.UsageError("--observed is for a [[tool.harness.training]]; other baselines have no file of facts.")
    if bool(runs) == bool(seeds):
        raise click.UsageError("give the runs to compare, or --seeds K to train new ones.")
    if runs:
        _check_nothing_to_train(options)

    from harness.documented_run.baseline.compare import baseline_of, compare
    from harness.documented_run.baseline.review import candidate_verdicts, is_baseline
    from harness.documented_run.baseline.stored import Baseline
    from harness.documented_run.record import RunRecord
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
        raise click.UsageError(f"--{given[0]} says what to train; existing runs already say that.")


def _new_runs(recipe: Recipe, count: int, baselines: Path | None, timeout: float, out: Output) -> list[RunRecord]:
    from harness.documented_run.baseline import sessions
    from harness.report.terminal import metrics, recipe_line

    records = []
    folder, fallback = baseline_folders(baselines)
    for seed in sessions.seeds_to_compare(recipe, count, folder, timeout=timeout, fallback=fallback):
        output = folder_of(seed)
        out.echo([recipe_line(seed)])
        records.append(sessions.train_seed(seed, output, timeout=timeout))
        out.echo([f"  {metrics(records[-1])}, written to {output}"])
    return records


@baseline.command(
    short_help="Show baselines and candidates, and what they can detect.",
    epilog=examples("harness baseline show", "harness baseline show sft"),
)
@click.argument("name", required=False)
@json_option("Also write it to this file.")
@baselines_option
def show(name: str | None, json_file: Path | None, baselines: Path | None) -> None:
    """Show a baseline and its candidate: seeds, spread, and the smallest drops that 1, 3 and 5 new seeds can detect.

    Without NAME, show all of them and any problem with them: broken files, recipes that have changed since. For a
    training of [[tool.harness.training]], show its file.
    """
    if name is not None and (of_scripts := _trainings((Path(name),), or_others=True)):
        from harness.baseline import training_file

        folder, (training,) = of_scripts
        path = training_file.path_of(_of_trainings(folder, baselines), training.name)
        training_file.read(path, training.name)
        say(path.read_text(encoding="utf-8"), nl=False)
        return
    from harness.documented_run.baseline.review import named, shown
    from harness.documented_run.baseline.stored import Baseline
    from harness.report.baseline import baseline_json, baseline_lines

    out = Output(json_file)
    out.check()
    folder, fallback = baseline_folders(baselines)
    if name is None and baselines is not None and not folder.is_dir():
        raise CannotTry(f"folder of baselines {folder} not found; choose another with --baselines")
    paths = [(path, None) for path in named(folder, name, fallback)] if name else shown(folder, fallback)
    told = []
    for path, wrong in paths:
        found = None if wrong else Baseline.read(path)
        out.echo(baseline_lines(found) if found else [wrong or ""])
        told.append((path, wrong, found))
    out.write_json(baseline_json(told))
    sys.exit(FOUND if any(wrong for _, wrong, _ in told) else 0)


@baseline.command(
    short_help="Make a candidate the baseline.",
    epilog=examples(
        'harness baseline accept tiny-plain-cpu --reason "new tokenizer"',
        'harness baseline accept sft all --reason "two epochs"',
    ),
)
@click.argument("name")
@click.argument("sections", nargs=-1, metavar="[SECTION]...")
@click.option("--reason", "--why", required=True, metavar="TEXT", help="Why you accept it; kept in the file.")
@baselines_option
def accept(name: str, sections: tuple[str, ...], reason: str, baselines: Path | None) -> None:
    """Make the candidate NAME the baseline. Its file keeps the reason, and the hash of the baseline it replaces.

    Both must have the same name, recipe and hardware class. The command reports differences in data, weights or
    versions.

    If NAME is a [[tool.harness.training]], run its script, and accept what it does now in each SECTION, or in all that
    differ (all). The command first prints what differs in these sections, including the numbers. It refuses to accept
    anything while CI is set, or if a check finds an error. If the script has uncommitted changes, the file says so;
    commit both together.
    """
    if of_scripts := _trainings((Path(name),)):
        from harness.baseline import accepting, training_file, trainings
        from harness.report.trainings import accepted_lines

        def show(found: trainings.TrainingVerdict, taken: Sequence[str]) -> None:
            echo(accepted_lines(found, taken))

        folder, (training,) = of_scripts
        if not sections:
            raise click.UsageError(f"name the SECTION to accept: {', '.join(training_file.sections())}, or all.")
        path = training_file.path_of(_of_trainings(folder, baselines), name)
        accepted = accepting.accept(training, folder, path, sections, reason, partial(say, err=True), show)
        say(f"accepted {', '.join(accepted)} of {path}: commit it with the change that it belongs to")
        return
    if sections:
        raise click.UsageError(f"{name} is not a [[tool.harness.training]]; only those have sections to accept.")
    from harness.documented_run.baseline.review import accept, changes

    folder, _ = baseline_folders(baselines)
    changed = changes(folder, name)
    path = accept(folder, name, reason)
    echo(f"  {each}" for each in changed)
    say(f"accepted as {path}")
