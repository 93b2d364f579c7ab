"""A folder of baselines as a reviewer sees it: what is there, what is wrong with it, and what is accepted into it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

from harness.baseline import compare, throughput
from harness.baseline.files import baseline_path, candidate_path, locked
from harness.baseline.stored import Baseline, without_seed
from harness.baseline.throughput import Throughput
from harness.errors import CannotTry
from harness.recipe import RECIPES
from harness.record import Verdict

NO_BASELINES = ("documented.json", "detection.json", "matrix.json")
"""The documents' own figures, and how well silent bugs are told from right loops: read by people, and held against the
claims and the corpus by tests."""


def stored_files(folder: Path) -> Iterator[Path]:
    """The baselines of a folder, in order."""
    return (path for path in sorted(folder.glob("*.json")) if path.name not in NO_BASELINES)


def read(path: Path) -> Baseline | Throughput:
    """A file of seeds or of benchmarks; one that tells neither is taken for seeds, and fails as such.

    Raises:
        CannotTry: no such file, or it cannot be trusted.
    """
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError):
        content = None
    of_benchmarks = isinstance(content, dict) and "runs" in content and "recipe" not in content
    return Throughput.read(path) if of_benchmarks else Baseline.read(path)


def is_baseline(path: Path) -> bool:
    """Whether the file is a baseline or candidate, and not a run record: it has several runs.

    Raises:
        CannotTry: it is no JSON.
    """
    try:
        content = json.loads(path.read_bytes()) if path.is_file() else None
    except (OSError, ValueError) as error:
        raise CannotTry(f"{path} cannot be read as JSON: {error}") from error
    return isinstance(content, dict) and "runs" in content


def candidate_verdicts(folder: Path, path: Path) -> list[Verdict]:
    """Compare a candidate with the baseline that it would replace.

    Raises:
        CannotTry: either is broken, there is no such baseline, or the candidate is of something else.
    """
    candidate = read(path)
    replaced = baseline_path(folder, candidate.name)
    if isinstance(candidate, Throughput):
        return throughput.compare_candidate(Throughput.read(replaced), candidate)
    return compare.compare_candidate(Baseline.read(replaced), candidate)


def stale(folder: Path) -> dict[Path, str]:
    """What is wrong with the baselines of a folder: broken files, and those of recipes that are no longer so.

    A baseline of somebody's own recipe cannot be held against it here; it counts as right.
    """
    wrong = {}
    for path in stored_files(folder):
        try:
            baseline = read(path)
        except CannotTry as error:
            wrong[path] = str(error)
            continue
        if path.stem != baseline.name:
            wrong[path] = f"baseline {path}: it is {baseline.name} by its contents; rename the file"
        elif isinstance(baseline, Baseline) and (sentence := _other_recipe(baseline)):
            wrong[path] = f"baseline {path}: {sentence}"
    return wrong


def _other_recipe(baseline: Baseline) -> str | None:
    if (recipe := RECIPES.get(baseline.recipe["name"])) is None:
        return None
    now = without_seed(recipe.as_dict())
    ways = ("loop", "processes", "split_batches")
    for key in {**now, **baseline.recipe}:
        if key not in ways and now.get(key) != baseline.recipe.get(key):
            return (
                f"recipe.{key} is {baseline.recipe.get(key)!r} there and {now.get(key)!r} now; no run is compared with "
                "it any more; record it anew or delete it"
            )
    return None


def accept(folder: Path, name: str, reason: str) -> Path:
    """Make the candidate the baseline. The old one's hash and the reason go into the new file.

    Raises:
        CannotTry: no such candidate, or no reason.
    """
    candidate, path = candidate_path(folder, name), baseline_path(folder, name)
    if not reason.strip():
        raise CannotTry("a baseline is accepted for a reason; give one with --reason")
    read(candidate)  # before a lock is left beside nothing
    with locked(candidate):
        new, old = read(candidate), read(path) if path.exists() else None
        for what, before in (old.counts if old else dict.fromkeys(new.counts, 2)).items():
            if (found := new.counts.get(what, 0)) < before:
                raise CannotTry(
                    f"candidate {candidate} has {found} {what}, expected {before} or more"
                    + (", as many as the baseline that it would replace" if old else ", which have a spread")
                )
        new.reason = reason.strip()
        new.replaces = hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else None
        new.write(path)
        candidate.unlink()
    return path
