"""The seeds that are trained for a baseline: to record it, or to compare new runs with it."""

from __future__ import annotations

from pathlib import Path

from harness import launch
from harness.baseline.compare import baseline_of, comparable
from harness.baseline.stored import Baseline, add, candidate_of, check_candidates, recorded_already, seed_run
from harness.errors import CannotTry
from harness.recipe import Recipe
from harness.record import RunRecord
from harness.run import preflight, quiet_libraries, run_recipe


def seeds_to_record(
    recipe: Recipe, count: int, folder: Path, *, timeout: float
) -> tuple[list[tuple[Recipe, bool]], Path]:
    """The recipe with each of ``count`` seeds from its own on and whether the candidate has it already; the candidate.

    Raises:
        CannotTry: the recipe fails before the first update, or the candidate is of something else.
    """
    check_candidates(folder)
    start = _begun("record", recipe, timeout)
    there, path = recorded_already(folder, start), candidate_of(folder, start)
    return [(recipe.with_(seed=seed), seed in there) for seed in range(recipe.seed, recipe.seed + count)], path


def record_seed(recipe: Recipe, folder: Path, *, candidate: Path, timeout: float) -> tuple[RunRecord, Path]:
    """Train one seed and add it to the candidate, whose file is returned too.

    Raises:
        CannotTry: the run was interrupted, or cannot be recorded; says what ``candidate`` keeps.
    """
    try:
        record = run_recipe(recipe, timeout=timeout)
        interrupted = record.interrupted
    except KeyboardInterrupt:  # several processes leave no record where they have no folder
        interrupted = True
    if interrupted:
        seeds = [run.seed for run in Baseline.read(candidate).runs] if candidate.exists() else []
        kept = f"{candidate} keeps the seeds {', '.join(map(str, sorted(seeds)))}" if seeds else "no seed was recorded"
        raise CannotTry(f"interrupted at seed {recipe.seed}; {kept}, and the same command goes on there")
    return record, add(folder, record)


def seeds_to_compare(
    recipe: Recipe, count: int, folder: Path, *, timeout: float, fallback: Path | None = None
) -> list[Recipe]:
    """The recipe with each of the first ``count`` seeds from its own on that the baseline does not have.

    Raises:
        CannotTry: the recipe fails before the first update, there is no baseline, or it is of something else.
    """
    start = _begun("compare", recipe, timeout)
    baseline = Baseline.read(baseline_of(folder, start, fallback=fallback))
    comparable(baseline, start)
    return [recipe.with_(seed=seed) for seed in baseline.new_seeds(recipe.seed, count)]


def train_seed(recipe: Recipe, output: Path, *, timeout: float) -> RunRecord:
    """Train one seed; it is kept in ``output`` like a run of its own.

    Raises:
        CannotTry: the run found something or was interrupted.
    """
    record = run_recipe(recipe, output=output, timeout=timeout)
    if record.interrupted:
        raise CannotTry("interrupted; the seeds before can be compared from their folders")
    seed_run(record)
    return record


def _begun(command: str, recipe: Recipe, timeout: float) -> RunRecord:
    if launch.world_size() is not None:
        raise CannotTry(f"{command} starts its processes itself; give it --processes instead of a launcher")
    quiet_libraries()
    return preflight(recipe, timeout=timeout)
