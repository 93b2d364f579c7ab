"""New runs against a baseline, in three ways: the same bits, the same quality, the documents' ball park."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from harness.baseline.files import baseline_path, hardware_class
from harness.baseline.statistics import ALPHA, POWER, Spread
from harness.baseline.stored import METRICS, Baseline, SeedRun, name_of, seed_run, without_seed
from harness.claims import BALL_PARK, RESULT, TRAINER_RESULT
from harness.errors import CannotTry
from harness.findings import Finding
from harness.recipe import Recipe
from harness.record import RunRecord, Verdict

EARLY = 20
"""The first updates, which a run on another fingerprint still shares with the recorded one."""

DRIFT = 1e-3
"""How much their losses may differ there. Measured with the built-in recipe: 0 between transformers 4.57.6 and 5.23.0,
1.2e-7 between one thread and two."""

SAME_KERNELS = ("device", "device_name", "machine", "cpu")
"""Where these agree the same random numbers are drawn; other CPUs may draw other masks of dropout."""

NOT_COMPARED = ("full-training-harness", "python", "cpus")
"""Of a fingerprint: no reason to expect other losses."""


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
        raise CannotTry("the runs to compare have a seed twice; a repeated seed is no further evidence")
    return [exact(baseline, runs), quality(baseline, runs), documented(records)]


def replays(baseline: Baseline, run: SeedRun) -> bool:
    """Whether the run is a recorded one once more, bit for bit: no further evidence of quality."""
    recorded = baseline.run(run.seed)
    return recorded is not None and all(
        getattr(run, name) == getattr(recorded, name) for name in ("curve", "weights", *METRICS)
    )


def compared(folder: Path, record: RunRecord) -> list[str]:
    """Compare the run with its baseline in the folder, and keep the verdicts in the record.

    Returns why it was not compared, where it was not: there is no such baseline, or it is of other data, say.

    Raises:
        CannotTry: the baseline's file is broken.
    """
    path = baseline_of(folder, record)
    if not path.exists():
        return [f"no baseline {path}"]
    if not record.whole or record.interrupted:
        return ["not compared with the baseline: only whole runs are"]
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
    return [exact(baseline, candidate.runs), quality(baseline, candidate.runs)]


def baseline_of(folder: Path, record: RunRecord) -> Path:
    """The file of the baseline that a run is compared with.

    Accelerate in one process makes the plain loop's updates, which every run shows before they are spent. So it shares
    the plain loop's baseline where it has none of its own, or where the plain one has the run's seed or more of them.
    """
    hardware = hardware_class(record.fingerprint)
    own, plain = (baseline_path(folder, name_of(each, hardware)) for each in (record.recipe, _as_plain(record.recipe)))
    there = [path for path in dict.fromkeys((own, plain)) if path.exists()]
    if len(there) < 2:
        return there[0] if there else plain

    def tells(path: Path) -> tuple[bool, int]:
        baseline = Baseline.read(path)
        return baseline.run(record.recipe["seed"]) is not None, len(baseline.runs)

    return max(there, key=tells)


def _as_plain(recipe: dict[str, Any]) -> dict[str, Any]:
    alike = recipe["loop"] == "accelerate" and recipe.get("processes", 1) == 1
    return {**recipe, "loop": "plain", "split_batches": False} if alike else recipe


def comparable(baseline: Baseline, record: RunRecord) -> None:
    """Raise unless the run can be compared with the baseline.

    Raises:
        CannotTry: it is of something else; names the key, what the baseline has and what the run has.
    """
    recipe = without_seed(record.recipe)
    if baseline.recipe["loop"] == "plain":
        recipe = _as_plain(recipe)
    same_subject(baseline, recipe, record.inputs, hardware_class(record.fingerprint))


def same_subject(baseline: Baseline, recipe: dict[str, Any], inputs: dict[str, str], hardware: str) -> None:
    for what, there, here, advice in (
        ("recipe", baseline.recipe, recipe, "another recipe needs a baseline of its own"),
        ("inputs", baseline.inputs, inputs, "it was recorded with other data or weights"),
        ("", {"hardware": baseline.hardware}, {"hardware": hardware}, "each hardware class has its own baseline"),
    ):
        for key in sorted(there.keys() | here.keys()):
            if there.get(key) != here.get(key):
                name = f"{what}.{key}" if what else key
                raise CannotTry(
                    f"baseline {baseline.name}: {name} is {there.get(key)!r} there and {here.get(key)!r} in the run; "
                    f"{advice}"
                )


def exact(baseline: Baseline, runs: Sequence[SeedRun]) -> Verdict:
    """The same seed on the same fingerprint gives the same losses, bit for bit, and the same weights.

    On another fingerprint that is skipped. Where only versions or threads are others, and not the CPU, the first
    updates are still compared: what differs there by more than rounding is another computation.
    """
    known = [(run, recorded) for run in runs if (recorded := baseline.run(run.seed))]
    if not known:
        seeds = ", ".join(str(run.seed) for run in baseline.runs)
        return Verdict("exact", "not applicable", (f"no run has a recorded seed ({seeds})",))
    findings, grounds, skipped, banded = [], [], [], []
    for run, recorded in known:
        where = f"{baseline.name}.json, seed {run.seed}, curve"
        if len(run.curve) != len(recorded.curve):
            findings.append(
                Finding(
                    expected=f"{len(recorded.curve)} losses",
                    observed=f"{len(run.curve)}",
                    where=where,
                    hint="Another number of updates: look at the data, the batch size and the epochs.",
                )
            )
            continue
        different = differences(recorded.fingerprint, run.fingerprint)
        if different:
            skipped.append(f"seed {run.seed} on another fingerprint ({'; '.join(different[:3])})")
            if all(recorded.fingerprint.get(key) == run.fingerprint.get(key) for key in SAME_KERNELS):
                banded.append(run.seed)
                findings += _early(run, recorded, where)
            continue
        if run.fingerprint["device"] != "cpu" and not run.fingerprint.get("deterministic_algorithms"):
            skipped.append(f"seed {run.seed} on {run.fingerprint['device']} without deterministic algorithms")
            continue
        findings += _bits(run, recorded, where)
        grounds.append(f"seed {run.seed}: {len(run.curve)} losses and a checksum of the weights compared bit for bit")
    if findings:
        return Verdict("exact", "fails", (*grounds, *skipped), tuple(findings))
    if not grounds:
        loosely = (f"the first {EARLY} losses are within {DRIFT} of the recorded",) if banded else ()
        return Verdict("exact", "not applicable", (*skipped, *loosely))
    return Verdict("exact", "holds", (*grounds, *skipped))


def _bits(run: SeedRun, recorded: SeedRun, where: str) -> Iterator[Finding]:
    for update, (ours, theirs) in enumerate(zip(recorded.curve, run.curve, strict=True), start=1):
        if ours != theirs:
            yield Finding(
                expected=f"loss {ours!r}",
                observed=f"{theirs!r}",
                where=where,
                update=update,
                hint="The same seed on the same machine and versions trains otherwise from here on: what changed? "
                "Accept a new baseline only when you know that it is no regression.",
            )
            return
    for name in (*METRICS, "weights"):
        if getattr(run, name) != getattr(recorded, name):
            yield Finding(
                expected=f"{name} {getattr(recorded, name)!r}",
                observed=f"{getattr(run, name)!r}",
                where=where.replace("curve", name),
                hint="The losses agree: the last update, the saved model or the evaluation has changed.",
            )


def _early(run: SeedRun, recorded: SeedRun, where: str) -> Iterator[Finding]:
    for update, (ours, theirs) in enumerate(zip(recorded.curve[:EARLY], run.curve[:EARLY], strict=True), start=1):
        if not abs(ours - theirs) <= DRIFT:
            yield Finding(
                expected=f"loss {ours:.4f} within {DRIFT}, as recorded on another fingerprint",
                observed=f"{theirs:.4f}",
                where=where,
                update=update,
                hint="Rounding does not add up to this in so few updates: these versions compute something else.",
            )
            return


def differences(recorded: dict[str, Any], found: dict[str, Any], prefix: str = "") -> list[str]:
    """What two fingerprints do not share, one sentence for each key."""
    sentences: list[str] = []
    for key in sorted((recorded.keys() | found.keys()) - {*NOT_COMPARED}):
        ours, theirs = recorded.get(key), found.get(key)
        if isinstance(ours, dict) and isinstance(theirs, dict):
            sentences += differences(ours, theirs, f"{prefix}{key}.")
        elif ours != theirs:
            sentences.append(f"{prefix}{key} {ours} there, {theirs} here")
    return sentences


def quality(baseline: Baseline, runs: Sequence[SeedRun]) -> Verdict:
    """Accuracy and F1 of the runs lie where runs of the recorded quality do; above is flagged like below."""
    if len(baseline.runs) < 2:
        raise CannotTry(f"baseline {baseline.name}: runs has one seed, which has no spread; record two or more")
    runs = [run for run in runs if not replays(baseline, run)]
    if not runs:
        return Verdict("quality", "not applicable", ("every run is a recorded one, bit for bit",))
    grounds, findings = [], []
    for name in METRICS:
        spread, new = spread_of(baseline, name), [getattr(run, name) for run in runs]
        low, high = spread.interval(len(new), alpha())
        observed, drop = fmean(new), spread.smallest_drop(len(new), alpha())
        grounds.append(
            f"{name} {observed:.4f} against {spread.mean:.4f} ± {spread.deviation:.4f} of {len(baseline.runs)} seeds, "
            f"standardised difference {spread.effect(new):+.1f}; smallest detectable drop with {len(new)} "
            f"run{'s' if len(new) > 1 else ''} {drop:.4f} ({POWER:.0%} power)"
        )
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
    return Verdict("quality", "fails" if findings else "holds", tuple(grounds), tuple(findings))


def alpha() -> float:
    """The rate of false alarms of one metric, of which there are several."""
    return ALPHA / len(METRICS)


def spread_of(baseline: Baseline, metric: str) -> Spread:
    """Over the recorded seeds; F1 moves by about a row's share too."""
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
            hint="Train other seeds; if it stays there, something that no check sees is wrong.",
        )
        for name, value in claim.expected.items()
        if not math.isfinite(observed[name]) or abs(observed[name] - value) > BALL_PARK
    )
    return Verdict("documented", "fails" if findings else "holds", grounds, findings)
