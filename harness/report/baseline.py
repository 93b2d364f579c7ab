"""The lines that the terminal shows of baselines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from harness.baseline.compare import Verdict, alpha, spread_of
from harness.baseline.stored import METRICS, Baseline
from harness.record import VerdictRecord
from harness.report.terminal import finding_lines, table


def verdict_lines(verdicts: Iterable[Verdict | VerdictRecord]) -> Iterator[str]:
    """What each lane of a comparison says, and on what grounds."""
    for verdict in verdicts:
        yield f"{verdict.lane:<12}{verdict.outcome}"
        yield from (f"  {ground}" for ground in verdict.grounds)
        for finding in verdict.findings:
            yield from list(finding_lines(finding))[1:]


def baseline_lines(baseline: Baseline) -> Iterator[str]:
    """A baseline's seeds, their spread, and what new runs could show."""
    yield f"{baseline.name}: {len(baseline.runs)} seeds, {baseline.reason or 'a candidate'}"
    rows = [("seed", "accuracy", "f1", "loss", "commit", "started")]
    for run in sorted(baseline.runs, key=lambda run: run.seed):
        commit = f"{run.commit or 'unknown'}"[:8] + ("+" if run.dirty else "")
        rows.append((f"{run.seed}", f"{run.accuracy:.4f}", f"{run.f1:.4f}", f"{run.loss:.4f}", commit, run.started))
    yield from table(rows)
    for name in METRICS if len(baseline.runs) > 1 else ():
        spread = spread_of(baseline, name)
        drops = ", ".join(f"{spread.smallest_drop(runs, alpha()):.4f} with {runs}" for runs in (1, 3, 5))
        yield f"{name}: {spread.mean:.4f} ± {spread.deviation:.4f}; drops that new seeds would show: {drops}"
