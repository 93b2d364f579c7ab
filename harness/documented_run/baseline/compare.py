"""New runs against a baseline, in three ways: the same bits, the same quality, the documents' ball park."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from harness.documented_run.baseline.curve import exact, replays
from harness.documented_run.baseline.files import baseline_path, hardware_class
from harness.documented_run.baseline.statistics import ALPHA, POWER, Spread
from harness.documented_run.baseline.stored import Baseline, SeedRun, as_plain, name_of, seed_run, without_seed
from harness.documented_run.claims import BALL_PARK, RESULT, TRAINER_RESULT
from harness.documented_run.recipe import METRICS, RECIPES, Recipe
from harness.documented_run.record import RunRecord, Verdict
from harness.errors import CannotTry
from harness.findings import Finding, Outcome


def compare(baseline: Baseline, records: Sequence[RunRecord]) -> list[Verdict]:
    """Compare runs with their baseline, in each of the three ways.

    Raises:
        CannotTry: the runs are not of the baseline's recipe, data, weights or hardware class, or cannot be compared.
    """
    if not records:
        raise CannotTry(f"no run to compare with the baseline {baseline.name}")
    for record in records:
        comparable(baseline, record)
    runs = [seed_run(record) for record in records]
    if len({run.seed for run in runs}) != len(runs):
        raise CannotTry("two of the runs to compare have the same seed; a repeated seed is no additional evidence")
    same_metrics(baseline, runs)
    lrs = [record.curves.lr for record in records]
    return [exact(baseline, runs, lrs), quality(baseline, runs), documented(records)]


def _words(path: Path, record: RunRecord, recipe: str | None) -> str:
    """The options that record a baseline of that run's recipe in the file, and of no other."""
    name, loop = record.recipe["name"], record.recipe["loop"]
    spec = recipe or (name if name in RECIPES else f"FILE.py:{name}")
    words = f"--recipe {spec}" + (f" --loop {loop}" if f"-{loop}-" in path.name and loop != "plain" else "")
    processes = record.recipe.get("processes", 1)
    return words + (f" --processes {processes}" if processes not in (None, 1) else "")


def compared(folder: Path, record: RunRecord, *, fallback: Path | None = None, recipe: str | None = None) -> list[str]:
    """Compare the run with its baseline in the folder, else in ``fallback``, and keep the verdicts in the record.

    ``recipe`` is how the command line names it, for what is to be done where there is no baseline.

    Returns why it was not compared, where it was not: there is no such baseline, or it is of other data, say.

    Raises:
        CannotTry: the baseline's file is broken.
    """
    path = baseline_of(folder, record, fallback=fallback)
    if not path.exists():
        return [f"no baseline {path}; record one with harness baseline record {_words(path, record, recipe)}"]
    if not record.whole or record.interrupted:
        return ["not compared with the baseline: only complete runs are"]
    baseline = Baseline.read(path)
    try:
        record.comparison = compare(baseline, [record])
    except CannotTry as reason:
        return [f"not compared with the baseline: {reason}"]
    return []


def compare_candidate(baseline: Baseline, candidate: Baseline) -> list[Verdict]:
    """Compare all seeds of a candidate with the baseline that it would replace, exactly and in quality.

    Raises:
        CannotTry: the candidate is of another recipe, data, weights or hardware class.
    """
    same_subject(baseline, candidate.recipe, candidate.inputs, candidate.hardware)
    same_metrics(baseline, candidate.runs)
    lrs = [candidate.lr] * len(candidate.runs)
    return [exact(baseline, candidate.runs, lrs), quality(baseline, candidate.runs)]


def baseline_of(folder: Path, record: RunRecord, *, fallback: Path | None = None) -> Path:
    """The file of the baseline that a run is compared with: in the folder, else in ``fallback``, else as it would be.

    Accelerate in one process makes the plain loop's updates, which every run shows before they are spent. So it shares
    the plain loop's baseline where it has none of its own, or where the plain one has the run's seed or more of them.

    Raises:
        CannotTry: the record lacks what every run writes.
    """
    needed = {"recipe": ("name", "loop", "seed", "epochs"), "fingerprint": ("device", "device_name")}
    lacks = [f"{part}.{key}" for part, keys in needed.items() for key in keys if key not in getattr(record, part)]
    if lacks:
        raise CannotTry(f"the run record lacks {', '.join(lacks)}; make the run again")
    hardware = hardware_class(record.fingerprint)
    names = dict.fromkeys(name_of(recipe, hardware) for recipe in (record.recipe, as_plain(record.recipe)))

    def tells(path: Path) -> tuple[bool, int]:
        baseline = Baseline.read(path)
        return baseline.run(record.recipe["seed"]) is not None, len(baseline.runs)

    for place in (folder, fallback):
        there = [] if place is None else [path for name in names if (path := baseline_path(place, name)).exists()]
        if there:
            return there[0] if len(there) == 1 else max(there, key=tells)
    return baseline_path(folder, list(names)[-1])


def comparable(baseline: Baseline, record: RunRecord) -> None:
    """Raise unless the run can be compared with the baseline.

    Raises:
        CannotTry: it is of something else; names the key, what the baseline has and what the run has.
    """
    recipe = without_seed(record.recipe)
    if baseline.recipe["loop"] == "plain":
        recipe = as_plain(recipe)
    same_subject(baseline, recipe, record.inputs, hardware_class(record.fingerprint))


def same_subject(baseline: Baseline, recipe: dict[str, Any], inputs: dict[str, str], hardware: str) -> None:
    for what, there, here, advice in (
        ("recipe", baseline.recipe, recipe, "a different recipe needs its own baseline"),
        ("inputs", baseline.inputs, inputs, "it was recorded with other data or weights"),
        ("", {"hardware": baseline.hardware}, {"hardware": hardware}, "each hardware class has its own baseline"),
    ):
        for key in sorted(there.keys() | here.keys()):
            if there.get(key) != here.get(key):
                name = f"{what}.{key}" if what else key
                raise CannotTry(
                    f"baseline {baseline.name}: {name} is {there.get(key)!r} in the baseline and {here.get(key)!r} "
                    f"in the run; {advice}"
                )


def same_metrics(baseline: Baseline, runs: Sequence[SeedRun]) -> None:
    """Raise unless modules of the user's own gave the same scores."""
    for run in runs:
        if run.metrics.keys() != set(baseline.metrics):
            raise CannotTry(
                f"baseline {baseline.name}: it has the metrics {', '.join(baseline.metrics)}, but seed {run.seed} "
                f"has {', '.join(run.metrics)}; different metrics need their own baseline"
            )


def quality(baseline: Baseline, runs: Sequence[SeedRun]) -> Verdict:
    """The metrics of the runs lie where runs of the recorded quality do; above is flagged like below.

    A metric holds only if a drop that is possible at all would have been seen.
    """
    if len(baseline.runs) < 2:
        raise CannotTry(
            f"baseline {baseline.name} has only one seed, so there is no spread to compare with; record another seed"
        )
    runs = [run for run in runs if not replays(baseline, run)]
    if not runs:
        known = "this seed is in the baseline already, so it says nothing new about quality"
        return Verdict("quality", "not applicable", (known,))
    grounds, findings, seeing = [], [], []
    for name in baseline.metrics:
        spread, new = spread_of(baseline, name), [run.metrics[name] for run in runs]
        low, high = spread.interval(len(new), alpha(baseline))
        observed, drop = fmean(new), spread.smallest_drop(len(new), alpha(baseline))
        grounds.append(
            f"{name} {observed:.4f} against {spread.mean:.4f} ± {spread.deviation:.4f} of {len(baseline.runs)} seeds, "
            f"standardised difference {spread.effect(new):+.1f}; smallest detectable drop with {len(new)} "
            f"run{'s' if len(new) > 1 else ''} {drop:.4f} ({POWER:.0%} power)"
        )
        if (possible := spread.mean - by_chance(baseline, name)) < drop:
            grounds.append(f"{name}: too few seeds to detect any possible drop (at most {max(0.0, possible):.4f})")
        else:
            seeing.append(name)
        if not low <= observed <= high:
            worse = observed < low
            findings.append(
                Finding(
                    expected=f"{name} from {low:.4f} to {high:.4f}",
                    observed=f"{observed:.4f}",
                    where=f"{baseline.name}.json, {name}",
                    hint="A drop that the recorded seeds do not explain: compare the curves, then versions and data."
                    if worse
                    else "A gain that the recorded seeds do not explain is suspicious too: does validation data leak?",
                )
            )
    outcome: Outcome = "fails" if findings else "holds" if seeing else "not applicable"
    if outcome == "not applicable":
        grounds.insert(0, "too few seeds: record more, or compare more new ones (--seeds)")
    return Verdict("quality", outcome, tuple(grounds), tuple(findings))


def by_chance(baseline: Baseline, metric: str) -> float:
    """What a model that learnt nothing comes to: the accuracy of guessing; 0 in the other metrics that have a name.

    How far a module of the user's own can fall is not known: minus infinity.
    """
    if metric not in METRICS:
        return -math.inf
    return 1 / baseline.recipe.get("num_labels", 2) if metric in ("accuracy", "f1_micro") else 0.0


def alpha(baseline: Baseline) -> float:
    """The rate of false alarms of one metric, of which there may be several."""
    return ALPHA / len(baseline.metrics)


def spread_of(baseline: Baseline, metric: str) -> Spread:
    """Over the recorded seeds; F1 and Matthews' correlation move by about a row's share too."""
    return Spread(baseline.metric(metric), step=1 / baseline.rows)


def documented(records: Sequence[RunRecord]) -> Verdict:
    """Accuracy and F1 are in the documents' ball park, where the recipe is the documents'."""
    record = records[0]
    claim = TRAINER_RESULT if record.recipe["loop"] == "trainer" else RESULT
    try:
        recipe = Recipe(**record.recipe)
    except (TypeError, ValueError) as error:
        return Verdict("documented", "not applicable", (f"the recipe is of another version of the harness: {error}",))
    if reason := claim.not_applicable(recipe):
        return Verdict("documented", "not applicable", (reason,))
    observed = {name: fmean(record.metrics[name] for record in records) for name in claim.expected}
    grounds = tuple(f"{name} {observed[name]:.4f}, documented {value:.4f}" for name, value in claim.expected.items())
    findings = tuple(
        Finding(
            expected=f"{name} {value:.4f} within {BALL_PARK}",
            observed=f"{observed[name]:.4f}",
            where=f"document, {claim.section}",
            hint="Train with other seeds. If it stays there, something is wrong that no check detects.",
        )
        for name, value in claim.expected.items()
        if not math.isfinite(observed[name]) or abs(observed[name] - value) > BALL_PARK
    )
    return Verdict("documented", "fails" if findings else "holds", grounds, findings)
