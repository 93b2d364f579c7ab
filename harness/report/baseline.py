"""The lines that the terminal shows of baselines."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal

from pydantic import Field

from harness.documented_run.baseline.compare import alpha, by_chance, spread_of
from harness.documented_run.baseline.stored import Baseline
from harness.documented_run.record import Verdict
from harness.files import StrictModel
from harness.report.terminal import table


class Compared(StrictModel):
    """What ``harness baseline compare`` says."""

    schema_: Literal[1] = Field(default=1, alias="schema")
    comparison: list[Verdict]


class SpreadShown(StrictModel):
    """How a metric varies between the seeds."""

    mean: float
    deviation: float
    smallest_drop: dict[int, float | None]
    """Number of new seeds to the smallest drop that they detect; None where they detect none that is possible."""


class SeedShown(StrictModel):
    """The run of one seed."""

    seed: int
    metrics: dict[str, float]
    loss: float
    commit: str | None
    dirty: bool | None
    started: str


class BrokenShown(StrictModel):
    """A file that cannot be used."""

    file: str
    wrong: str


class FileShown(StrictModel):
    """A file that can be used."""

    file: str
    wrong: None = None
    name: str
    reason: str | None
    """Why it became the baseline; None for a candidate."""


class SeedsShown(FileShown):
    """A baseline of a recipe, or a candidate."""

    kind: Literal["seeds"] = "seeds"
    runs: list[SeedShown]
    spread: dict[str, SpreadShown]
    """Metric to its spread; empty where there is one seed."""


class BaselinesShown(StrictModel):
    """What ``harness baseline show`` shows."""

    schema_: Literal[1] = Field(default=1, alias="schema")
    baselines: list[BrokenShown | SeedsShown]


def verdict_lines(verdicts: Iterable[Verdict]) -> Iterator[str]:
    """What each comparison says, and on what grounds."""
    for verdict in verdicts:
        name = "same seed" if verdict.comparison == "exact" else verdict.comparison  # bit for bit, or within rounding
        yield f"{name:<11} {verdict.outcome}"
        yield from (f"  {ground}" for ground in verdict.grounds)
        for finding in verdict.findings:
            yield from finding.lines()[1:]


def verdicts_json(verdicts: Iterable[Verdict]) -> str:
    """``baseline compare --json``: the comparisons as run.json has them."""
    return Compared(comparison=list(verdicts)).model_dump_json(indent=1)


def baseline_json(told: Iterable[tuple[Path, str | None, Baseline | None]]) -> str:
    """``baseline show --json``: each file, what is wrong with it or what it holds, and what new seeds could show."""
    return BaselinesShown(baselines=[_shown(*each) for each in told]).model_dump_json(indent=1)


def _shown(path: Path, wrong: str | None, found: Baseline | None) -> BrokenShown | SeedsShown:
    file = str(path)
    if found is None:
        return BrokenShown(file=file, wrong=wrong or "")
    kept = SeedShown.model_fields
    runs = [
        SeedShown(**{key: getattr(run, key) for key in kept}) for run in sorted(found.runs, key=lambda run: run.seed)
    ]
    spread = {name: _spread(found, name) for name in _spread_of(found)}
    return SeedsShown(file=file, name=found.name, reason=found.reason, runs=runs, spread=spread)


def _spread_of(baseline: Baseline) -> tuple[str, ...]:
    return baseline.metrics if len(baseline.runs) > 1 else ()


def _spread(baseline: Baseline, metric: str) -> SpreadShown:
    spread = spread_of(baseline, metric)
    return SpreadShown(mean=spread.mean, deviation=spread.deviation, smallest_drop=_drops(baseline, metric))


def _drops(baseline: Baseline, metric: str) -> dict[int, float | None]:
    """The smallest drop that so many new seeds detect; None where none that is possible."""
    spread = spread_of(baseline, metric)
    possible = spread.mean - by_chance(baseline, metric)
    drops = {seeds: spread.smallest_drop(seeds, alpha(baseline)) for seeds in (1, 3, 5)}
    return {seeds: drop if drop <= possible else None for seeds, drop in drops.items()}


def next_lines(candidate: Path, *, few: str | None, baselines: Path | None) -> Iterator[str]:
    """What to do with a candidate. ``few``: why it cannot be accepted yet; ``baselines``: as the option was given."""
    name = candidate.stem
    option = f" --baselines {shlex.quote(str(baselines))}" if baselines else ""
    yield f"look at it   harness baseline show {name}{option}"
    if few:
        yield f"not accepted yet: it has {few}"
        yield f"add seeds    harness baseline record{option} --seeds K, or the seeds of other files: FILE.json"
    else:
        yield f'accept it    harness baseline accept {name}{option} --reason "..."'


def baseline_lines(baseline: Baseline) -> Iterator[str]:
    """A baseline's seeds, their spread, and what new ones could show."""
    count = len(baseline.runs)
    yield f"{baseline.name}: {count} seed{'s' * (count != 1)}, {baseline.reason or 'a candidate'}"
    rows = [("seed", *baseline.metrics, "loss", "commit", "started")]
    for run in sorted(baseline.runs, key=lambda run: run.seed):
        figures = [f"{figure:.4f}" for figure in (*(run.metrics[name] for name in baseline.metrics), run.loss)]
        rows.append((f"{run.seed}", *figures, _commit(run.commit, run.dirty), run.started))
    yield from table(rows)
    for name in _spread_of(baseline):
        spread = spread_of(baseline, name)
        drops = _drops(baseline, name).values()
        listed = ", ".join("none that is possible" if drop is None else f"{drop:.4f}" for drop in drops)
        yield f"{name}: {spread.mean:.4f} ± {spread.deviation:.4f}; smallest drop that 1, 3, 5 seeds detect: {listed}"


def _commit(commit: str | None, dirty: bool | None) -> str:
    return f"{commit or 'unknown'}"[:8] + ("+" if dirty else "")
