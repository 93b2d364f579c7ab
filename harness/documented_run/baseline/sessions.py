"""The seeds that are trained for a baseline: to record it, or to compare new runs with it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

from harness import launch
from harness.documented_run.baseline.compare import baseline_of, comparable
from harness.documented_run.baseline.review import is_baseline
from harness.documented_run.baseline.stored import (
    Baseline,
    add,
    candidate_of,
    check_candidates,
    merge,
    of_records,
    recorded_already,
    seed_run,
)
from harness.documented_run.recipe import Recipe
from harness.documented_run.record import RunRecord
from harness.documented_run.run import preflight, quiet_libraries, run_recipe
from harness.errors import CannotTry
from harness.spread import On, spread

OF_ANY_MACHINE = ("python", "libraries", "device")
"""What a fingerprint must share with this machine's where any machine of a cluster may have trained the seed."""


def seeds_to_record(
    recipe: Recipe, count: int, folder: Path, *, timeout: float, on: On = "here"
) -> tuple[list[tuple[Recipe, bool]], RunRecord]:
    """The recipe with each of ``count`` seeds from its own on and whether the candidate has it already.

    Returns:
        them, and the beginning of a run, which tells the candidate.

    Raises:
        CannotTry: the recipe fails before the first update, or the candidate is of something else.
    """
    check_candidates(folder)
    start = _begun("record", recipe, timeout)
    there = recorded_already(folder, start, facts=None if on == "here" else OF_ANY_MACHINE)
    return [(recipe.with_(seed=seed), seed in there) for seed in range(recipe.seed, recipe.seed + count)], start


def record_seeds(
    recipes: Iterable[Recipe], folder: Path, *, start: RunRecord, timeout: float, on: On = "here"
) -> Iterator[tuple[RunRecord, Path]]:
    """Train each seed and add it to the candidate, whose file is returned too: one by one, or as they come from ``on``.

    Raises:
        CannotTry: it was interrupted, and says what the candidate keeps; a run cannot be recorded; or as
            :func:`harness.spread.spread`.
    """
    threads, processes = start.fingerprint["threads"], start.recipe["processes"]
    work = partial(_train, timeout=timeout)
    try:
        for _, record in spread(work, recipes, on, threads=threads, processes=processes):
            if record.interrupted:
                raise KeyboardInterrupt
            record.provenance.command = start.provenance.command  # and not that of the process of Ray's
            yield record, add(folder, record)
    except KeyboardInterrupt:  # several processes leave no record where they have no folder
        candidate = candidate_of(folder, start)
        seeds = [run.seed for run in Baseline.read(candidate).runs] if candidate.exists() else []
        kept = f"{candidate} keeps the seeds {', '.join(map(str, sorted(seeds)))}" if seeds else "no seed was recorded"
        raise CannotTry(f"interrupted; {kept}, and the same command continues from there") from None


def _train(recipe: Recipe, *, timeout: float) -> RunRecord:
    quiet_libraries()
    return run_recipe(recipe, timeout=timeout)


def record_runs(paths: Sequence[Path], folder: Path) -> Iterator[tuple[Path, list[int], Path]]:
    """Add runs that are there, perhaps from other machines: run records, baselines and candidates.

    Yields:
        each path, the seeds that it has, and the candidate that they were added to.

    Raises:
        CannotTry: one of them is broken, or cannot be recorded.
    """
    read = [Baseline.read(path) if is_baseline(path) else of_records([RunRecord.read(path)]) for path in paths]
    check_candidates(folder)
    for path, new in zip(paths, read, strict=True):
        yield path, [run.seed for run in new.runs], merge(folder, new)


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
        raise CannotTry("interrupted; the earlier seeds can be compared from their folders")
    seed_run(record)
    return record


def _begun(command: str, recipe: Recipe, timeout: float) -> RunRecord:
    if launch.world_size() is not None:
        raise CannotTry(f"{command} starts its processes itself; give it --processes instead of a launcher")
    quiet_libraries()
    return preflight(recipe, timeout=timeout)
