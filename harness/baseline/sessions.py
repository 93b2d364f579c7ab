"""The seeds that are trained for a baseline: to record it, or to compare new runs with it."""

from __future__ import annotations

from pathlib import Path

from harness import launch
from harness.baseline.compare import baseline_of, comparable
from harness.baseline.files import candidate_path, hardware_class
from harness.baseline.stored import Baseline, add, name_of, recorded_already, seed_run
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
    start = _begun("record", recipe, timeout)
    there = recorded_already(folder, start)
    path = candidate_path(folder, name_of(start.recipe, hardware_class(start.fingerprint)))
    return [(recipe.with_(seed=seed), seed in there) for seed in range(recipe.seed, recipe.seed + count)], path


def record_seed(recipe: Recipe, folder: Path, *, timeout: float) -> tuple[RunRecord, Path]:
    """Train one seed and add it to the candidate, whose file is returned too.

    Raises:
        CannotTry: the run was interrupted, or cannot be recorded.
    """
    record = run_recipe(recipe, timeout=timeout)
    if record.interrupted:
        raise CannotTry(
            f"interrupted at seed {recipe.seed}; the candidate keeps the seeds that were recorded before it"
        )
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
