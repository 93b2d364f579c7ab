"""Which of several thresholds is scored last, and where: events by hand."""

from __future__ import annotations

from typing import Any

import pytest

from harness.watch.check import Found, Verdict
from harness.watch.checks.metrics.thresholds import ThresholdFromScoredRows
from harness.watch.events import End, MetricCall, Position

TRUE, OTHER = [0, 1] * 6, [1, 0] * 6


def scored(line: int, above: int, labels: list[int] = TRUE, updates: int = 0) -> MetricCall:
    """A score of the rows from ``above`` on; the best is that of 6."""
    predictions = [int(row >= above) for row in range(12)]
    at = Position(updates_made=updates)
    return MetricCall("f1", predictions, labels, f"train.py:{line}", whole=True, value=1 - abs(above - 6) / 12, at=at)


def told(events: list[MetricCall]) -> list[Verdict]:
    """What the check says of these calls."""
    verdicts: list[Verdict] = []
    check: Any = ThresholdFromScoredRows()
    check.says = lambda verdict, *_: verdicts.append(verdict)
    check.begin()
    for event in events:
        check.on_metric_call(event)
    check.on_end(End())
    return verdicts


SWEEP = [scored(1, above) for above in range(11)]


@pytest.mark.parametrize(
    ("events", "found"),
    [
        ([*SWEEP, scored(2, 6)], True),
        ([*SWEEP, scored(2, 3)], False),  # one that was tried, and not the best
        ([*SWEEP, scored(2, 6, OTHER), scored(2, 6)], False),  # other rows were scored with it first
        ([*(scored(1, above, updates=above) for above in range(11)), scored(2, 6, updates=11)], False),  # each epoch's
    ],
)
def test_the_best_threshold_scored_last_on_the_same_rows(events: list[MetricCall], found: bool) -> None:
    assert any(isinstance(each, Found) for each in told(events)) is found
