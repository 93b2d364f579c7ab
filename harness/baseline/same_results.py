"""The three loops against each other: do they end in the same results, as the documents say?

"A full training" sets out to reach the results of "Fine-tuning a model with the Trainer API" by hand (002, 004). Seeds
vary by more than loops do, so each loop is a sample of seeds, and two samples are the same where a test of equivalence
shows it (:class:`harness.baseline.statistics.Equivalence`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Literal

from harness.baseline.compare import same_subject, spread_of
from harness.baseline.curve import replays
from harness.baseline.review import files_of, read
from harness.baseline.statistics import Equivalence
from harness.baseline.stored import Baseline
from harness.claims import RESULT, TRAINER_RESULT
from harness.errors import CannotTry

Outcome = Literal["equivalent within the margin", "not shown"]


def margin(metric: str) -> float:
    """How far apart two loops' means may be and count as the same.

    It is what the documents' own two results are apart, Trainer's and that by hand, which they call the same: 0.0147 of
    accuracy, 0.0089 of F1. So it comes from no run of ours.
    """
    return abs(float(TRAINER_RESULT.expected[metric]) - float(RESULT.expected[metric]))


@dataclass(frozen=True)
class Pair:
    """Two loops, compared in one metric."""

    metric: str
    loops: tuple[str, str]
    equivalence: Equivalence


@dataclass(frozen=True)
class SameResults:
    """The loops of one recipe on one hardware class, each with each."""

    name: str
    hardware: str
    seeds: dict[str, int]
    """By loop."""
    pairs: tuple[Pair, ...]

    @property
    def outcome(self) -> Outcome:
        """All pairs must be shown, so that no correction for their number is needed (Berger 1982)."""
        return "equivalent within the margin" if all(pair.equivalence.shown for pair in self.pairs) else "not shown"


def loops_of(folder: Path, fallback: Path | None = None) -> list[list[Baseline]]:
    """The baselines that differ in their loop alone, by recipe and hardware class; of ``fallback`` what a folder lacks.

    Raises:
        CannotTry: a file is broken, or no recipe has two loops.
    """
    if fallback is None and not folder.is_dir():
        raise CannotTry(f"folder of baselines {folder} not found; choose another with --baselines")
    found: dict[tuple[str, str], list[Baseline]] = {}
    for baseline in map(read, files_of(folder, fallback)):
        if isinstance(baseline, Baseline) and baseline.recipe.get("processes", 1) == 1:
            found.setdefault((baseline.recipe["name"], baseline.hardware), []).append(baseline)
    several = [baselines for baselines in found.values() if len(baselines) > 1]
    if not several:
        raise CannotTry(f"{folder} has no recipe with two loops; record another with harness baseline record --loop")
    return several


def same_results(baselines: Sequence[Baseline]) -> SameResults:
    """Compare each loop with each in both metrics.

    Raises:
        CannotTry: they differ in more than the loop, one has a single seed, or one repeats the runs of another.
    """
    if len(baselines) < 2:
        raise CannotTry("the results of one loop are compared with those of another; give two baselines or more")
    first, *others = baselines
    for other in others:
        same_subject(first, {**other.recipe, "loop": first.recipe["loop"]}, other.inputs, other.hardware)
    seeds = {baseline.recipe["loop"]: len(baseline.runs) for baseline in baselines}
    if len(seeds) < len(baselines):
        raise CannotTry(f"two of {', '.join(each.name for each in baselines)} are of one loop; give each loop once")
    if not RESULT.expected.keys() & first.metrics:
        raise CannotTry(
            f"the margin is that of the documents' {' and '.join(RESULT.expected)}; the recipe measures "
            f"{', '.join(first.metrics)}"
        )
    if single := [baseline.name for baseline in baselines if len(baseline.runs) < 2]:
        raise CannotTry(f"baseline {single[0]}: runs has one seed, which has no spread; record two or more")
    pairs = tuple(pair for one, other in combinations(baselines, 2) for pair in _compared(one, other))
    return SameResults(first.recipe["name"], first.hardware, seeds, pairs)


def _compared(one: Baseline, other: Baseline) -> Iterator[Pair]:
    if repeated := [str(run.seed) for run in other.runs if replays(one, run)]:
        raise CannotTry(
            f"{other.name} has seeds of {one.name}, bit for bit ({', '.join(repeated)}): they are no second sample; "
            "record others with --seed"
        )
    for metric in filter(RESULT.expected.__contains__, one.metrics):
        equivalence = Equivalence(spread_of(one, metric), spread_of(other, metric), margin(metric))
        yield Pair(metric, (one.recipe["loop"], other.recipe["loop"]), equivalence)
