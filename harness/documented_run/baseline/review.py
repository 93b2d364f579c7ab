"""A folder of baselines as a reviewer sees it: what is there, what is wrong with it, and what is accepted into it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from harness.documented_run.baseline import compare
from harness.documented_run.baseline.curve import differences
from harness.documented_run.baseline.files import (
    CANDIDATES,
    Stored,
    baseline_path,
    candidate_path,
    hardware_class,
    locked,
)
from harness.documented_run.baseline.stored import Baseline, without_seed
from harness.documented_run.recipe import RECIPES, Recipe
from harness.documented_run.record import Verdict
from harness.errors import CannotTry
from harness.findings import first_line

NO_BASELINES = ("documented.json", "detection.json", "matrix.json", "suite.json")
"""What is no baseline of runs: read by people, and held against the claims and the corpus by tests."""


def stored_files(folder: Path) -> Iterator[Path]:
    """The baselines of a folder, in order."""
    return (path for path in sorted(folder.glob("*.json")) if path.name not in NO_BASELINES)


def files_of(folder: Path, fallback: Path | None = None) -> list[Path]:
    """The baselines of the folder, and those of ``fallback`` that it lacks, in order of their names."""
    files = {path.name: path for each in (fallback, folder) if each is not None for path in stored_files(each)}
    return [files[name] for name in sorted(files)]


def is_baseline(path: Path) -> bool:
    """Whether the file is a baseline or candidate, and not a run record: it has several runs.

    Raises:
        CannotTry: it is no JSON.
    """
    try:
        content = json.loads(path.read_bytes()) if path.is_file() else None
    except (OSError, ValueError, RecursionError) as error:
        raise CannotTry(f"{path} cannot be read as JSON ({first_line(error)})") from error
    return isinstance(content, dict) and "runs" in content


def candidates(folder: Path) -> list[Path]:
    """The candidates of a folder, in order."""
    return sorted((folder / CANDIDATES).glob("*.json"))


def named(folder: Path, name: str, fallback: Path | None = None) -> list[Path]:
    """The baseline of that name, in the folder or else in ``fallback``, and its candidate: those that there are.

    Raises:
        CannotTry: there is neither.
    """
    places = [baseline_path(each, name) for each in (folder, fallback) if each is not None]
    found = [path for path in places if path.exists()][:1]
    found += [path for path in (candidate_path(folder, name),) if path.exists()]
    if not found:
        raise CannotTry(
            f"baseline {places[0]} not found, and no candidate of that name; record one with harness baseline record, "
            "or choose a folder with --baselines"
        )
    return found


def candidate_verdicts(folder: Path, path: Path, *, fallback: Path | None = None) -> list[Verdict]:
    """Compare a candidate with the baseline that it would replace.

    Raises:
        CannotTry: either is broken, there is no such baseline, or the candidate is of something else.
    """
    candidate = Baseline.read(path)
    replaced = named(folder, candidate.name, fallback)[0]
    if replaced == candidate_path(folder, candidate.name):
        raise CannotTry(
            f"candidate {path} would be the first baseline of its name, so there is none to compare it with; look "
            f"at it with harness baseline show {candidate.name}"
        )
    return compare.compare_candidate(Baseline.read(replaced), candidate)


def stale(folder: Path) -> dict[Path, str]:
    """What is wrong with the baselines of a folder: broken files, and those of recipes that are no longer so.

    A baseline of somebody's own recipe cannot be held against it here; it counts as right.
    """
    return {path: sentence for path in stored_files(folder) if (sentence := _wrong(path))}


def shown(folder: Path, fallback: Path | None = None) -> Iterator[tuple[Path, str | None]]:
    """The baselines of the folder, those of ``fallback`` that it lacks, its candidates; what is wrong with each."""
    for path in (*files_of(folder, fallback), *candidates(folder)):
        yield path, _wrong(path)


def _wrong(path: Path) -> str | None:
    try:
        baseline = Baseline.read(path)
    except CannotTry as error:
        return str(error)
    if path.stem != baseline.name:
        return f"baseline {path}: its contents say that it is {baseline.name}; rename the file"
    sentence = _other_recipe(baseline)
    return sentence and f"baseline {path}: {sentence}"


def _other_recipe(baseline: Baseline) -> str | None:
    """Why no run is compared with it any more, where the recipe of that name has other values."""
    if (recipe := RECIPES.get(baseline.recipe["name"])) is None:
        return None
    now = without_seed(recipe.as_dict())
    ways = ("loop", "processes", "split_batches")
    for key in {**now, **baseline.recipe}:
        if key not in ways and now.get(key) != baseline.recipe.get(key):
            return (
                f"recipe.{key} is {baseline.recipe.get(key)!r} in the baseline and {now.get(key)!r} now, so no run "
                "is compared with it any more; delete it and record it again"
            )
    return None


def accept(folder: Path, name: str, reason: str) -> Path:
    """Make the candidate the baseline. The old one's hash and the reason go into the new file.

    Raises:
        CannotTry: no such candidate or no reason; or it is of another name, recipe or hardware class than the file or
            its own runs: every key is named.
    """
    candidate, path = candidate_path(folder, name), baseline_path(folder, name)
    if not reason.strip():
        raise CannotTry("accepting a baseline needs a reason; give one with --reason")
    Baseline.read(candidate)  # before a lock is left beside nothing
    with locked(candidate):
        new, old = Baseline.read(candidate), Baseline.read(path) if path.exists() else None
        if wrong := [*_not_itself(new, name), *_other_subject(old, new)]:
            raise CannotTry(
                f"candidate {candidate} is not what it would be accepted as: {'; '.join(wrong)}; record it again, "
                f"or delete {path} first if it is meant to be of something else"
            )
        if lacking := few(new, old):
            raise CannotTry(f"candidate {candidate} has {lacking}")
        new.reason = reason.strip()
        new.replaces = hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else None
        new.write(path)
        candidate.unlink()
    return path


def changes(folder: Path, name: str) -> list[str]:
    """What a candidate has otherwise than the baseline that it would replace, one sentence for each key.

    Data, weights, versions, machine, numbers of runs and updates, learning rates; not what was measured.

    Raises:
        CannotTry: either is broken, or there is no such candidate.
    """
    new, path = Baseline.read(candidate_path(folder, name)), baseline_path(folder, name)
    return differences(_about(Baseline.read(path)), _about(new)) if path.exists() else []


def acceptable(folder: Path, candidate: Path) -> str | None:
    """Why a candidate has too few runs to be accepted; None where they are enough.

    Raises:
        CannotTry: it, or the baseline that it would replace, is broken.
    """
    new = Baseline.read(candidate)
    path = baseline_path(folder, new.name)
    return few(new, Baseline.read(path) if path.exists() else None)


def few(new: Stored, old: Stored | None) -> str | None:
    """How many runs of what a candidate has, where they are fewer than the old baseline's, or have no spread."""
    for what, before in (old.counts if old else dict.fromkeys(new.counts, 2)).items():
        if (found := new.counts.get(what, 0)) < before:
            why = ", as many as the baseline that it would replace" if old else ", which have a spread"
            counted = what.removesuffix("s") if found == 1 else what
            return f"{found} {counted}, expected {before} or more{why}"
    return None


def _not_itself(new: Baseline, name: str) -> Iterator[str]:
    """Where a candidate's name, hardware class or recipe is not what its file and its runs say."""
    if new.name != name:
        yield f"its contents say that its name is {new.name}, and its file name says {name}"
    classes = {hardware_class({"device": None, "device_name": None} | run.fingerprint) for run in new.runs}
    if classes != {new.hardware}:
        yield f"its hardware is {new.hardware}, but that of its runs is {', '.join(sorted(classes))}"
    try:
        whole = without_seed(Recipe(**new.recipe).as_dict())
    except (TypeError, ValueError) as error:
        yield f"the recipe is not valid: {error}"
        return
    yield from differences({"recipe": whole}, {"recipe": new.recipe})
    if sentence := _other_recipe(new):
        yield sentence


def _other_subject(old: Baseline | None, new: Baseline) -> Iterator[str]:
    if old is not None:
        yield from differences(
            {"recipe": old.recipe, "hardware": old.hardware}, {"recipe": new.recipe, "hardware": new.hardware}
        )


def _about(baseline: Baseline) -> dict[str, Any]:
    return {
        "fingerprint": baseline.runs[0].fingerprint,
        **baseline.counts,
        "inputs": baseline.inputs,
        "rows": baseline.rows,
        "updates": len(baseline.runs[0].curve),
        "learning rates": baseline.lr and hashlib.sha256(repr(baseline.lr).encode()).hexdigest()[:12],
    }
