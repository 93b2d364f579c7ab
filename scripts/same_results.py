"""The three loops against each other: do they end in the same results, as the documents say?

    python -m scripts.same_results [FILE]...

compares the baselines that differ in their loop alone, or those that are given, candidates too. Exit status 1 where it
is not shown.

"A full training" sets out to reach the results of "Fine-tuning a model with the Trainer API" by hand (002, 004). Seeds
vary by more than loops do, so each loop is a sample of seeds, and two samples are the same where a test of equivalence
shows it.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Literal

import click
from scipy import optimize, stats

from harness.cli.options import FOUND, baseline_folders, baselines_option
from harness.cli.output import echo
from harness.documented_run.baseline.compare import same_subject, spread_of
from harness.documented_run.baseline.curve import replays
from harness.documented_run.baseline.review import files_of
from harness.documented_run.baseline.statistics import POWER, Spread
from harness.documented_run.baseline.stored import Baseline
from harness.documented_run.claims import RESULT, TRAINER_RESULT
from harness.errors import CannotTry
from harness.report.terminal import table

EQUIVALENCE_ALPHA = 0.05
"""How often two means that are a margin apart may be called equivalent: the usual level of each one-sided test."""

Outcome = Literal["equivalent within the margin", "not shown"]


def margin(metric: str) -> float:
    """How far apart two loops' means may be and count as the same.

    It is what the documents' own two results are apart, Trainer's and that by hand, which they call the same: 0.0147 of
    accuracy, 0.0089 of F1. So it comes from no run of ours.
    """
    return abs(float(TRAINER_RESULT.expected[metric]) - float(RESULT.expected[metric]))


@dataclass(frozen=True)
class Equivalence:
    """Whether the means behind two samples are less than a margin apart: two one-sided t tests.

    That two samples do not differ significantly shows nothing: too few seeds never do. Here it is the other way round:
    without evidence the means count as apart (Schuirmann 1987). The samples may have other variances (Welch 1947).

    Args:
        margin: the smallest difference that would matter, in the metric's unit; above 0.
    """

    one: Spread
    other: Spread
    margin: float
    alpha: float = EQUIVALENCE_ALPHA

    @property
    def difference(self) -> float:
        return self.one.mean - self.other.mean

    @property
    def error(self) -> float:
        """The standard error of the difference."""
        return math.sqrt(sum(self._variances))

    @property
    def freedom(self) -> float:
        """The degrees of freedom (Welch and Satterthwaite)."""
        sizes = (len(self.one.values), len(self.other.values))
        parts = sum(variance**2 / (size - 1) for variance, size in zip(self._variances, sizes, strict=True))
        return sum(self._variances) ** 2 / parts if parts else float(sum(sizes) - 2)

    @property
    def p(self) -> float:
        """The larger of the two one-sided p values: that the difference is not above -margin, or not below margin."""
        nearer = self.margin - abs(self.difference)
        if self.error == 0:
            return float(nearer <= 0)
        p: float = stats.t.sf(nearer / self.error, self.freedom)
        return p

    @property
    def shown(self) -> bool:
        return self.p < self.alpha

    @property
    def interval(self) -> tuple[float, float]:
        """Of the difference, with probability 1 - 2 alpha: equivalence is shown where it lies within the margin."""
        half = self._quantile * self.error
        return self.difference - half, self.difference + half

    def power(self, margin: float) -> float:
        """How often samples of these sizes and spreads show means within ``margin`` that are really equal."""
        if self.error == 0:
            return 1.0
        steps, quantile = margin / self.error, self._quantile
        # The estimated error is the true one times a chi variable over the root of its degrees of freedom.
        estimated = stats.chi(self.freedom, scale=1 / math.sqrt(self.freedom))
        power: float = estimated.expect(
            lambda ratio: 2 * stats.norm.cdf(steps - quantile * ratio) - 1, lb=0, ub=steps / quantile
        )
        return power

    def smallest_margin(self, power: float = POWER) -> float:
        """The smallest margin within which these samples show equal means with this power."""
        if self.error == 0:
            return 0.0
        steps: float = optimize.brentq(
            lambda steps: self.power(steps * self.error) - power, 0.1 * self._quantile, 10 * self._quantile
        )
        return steps * self.error

    @property
    def _variances(self) -> tuple[float, float]:
        """Of the two means."""
        one, other = (spread.deviation**2 / len(spread.values) for spread in (self.one, self.other))
        return one, other

    @property
    def _quantile(self) -> float:
        quantile: float = stats.t.ppf(1 - self.alpha, self.freedom)
        return quantile


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
    for baseline in map(Baseline.read, files_of(folder, fallback)):
        if baseline.recipe.get("processes", 1) == 1:
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
        raise CannotTry(f"baseline {single[0]} has runs of one seed, so no spread; record another seed")
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


def same_results_lines(found: SameResults) -> Iterator[str]:
    """How far each two loops are apart, what these seeds show, and what they could show."""
    seeds = ", ".join(f"{loop} {count}" for loop, count in found.seeds.items())
    yield f"{found.name} on {found.hardware}, seeds: {seeds}"
    rows = [("metric", "loops", "difference", "90 % interval", "margin", "p", "margin seen with 80 % power")]
    for pair in found.pairs:
        of = pair.equivalence
        low, high = of.interval
        figures = (f"{of.difference:+.4f}", f"{low:+.4f} to {high:+.4f}", f"{of.margin:.4f}", f"{of.p:.1e}")
        rows.append((pair.metric, " - ".join(pair.loops), *figures, f"{of.smallest_margin():.4f}"))
    yield from table(rows)
    yield f"the same results: {found.outcome}"


@click.command()
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
@baselines_option
def main(files: tuple[Path, ...], baselines: Path | None) -> None:
    """Are the seeds of plain, accelerate and trainer equivalent, within the documents' own margin?"""
    folder, fallback = baseline_folders(baselines)
    try:
        groups = [[Baseline.read(file) for file in files]] if files else loops_of(folder, fallback)
        found = [same_results(group) for group in groups]
    except CannotTry as error:
        raise click.UsageError(str(error)) from error
    for each in found:
        echo(same_results_lines(each))
    sys.exit(FOUND if any(each.outcome == "not shown" for each in found) else 0)


if __name__ == "__main__":
    main()
