"""Chance: what an evaluation comes to without learning."""

from __future__ import annotations

import math
from dataclasses import dataclass

from harness.vary.differences import as_share, score, steady
from harness.vary.relation import Tried

ERRORS = 3.0
"""Standard errors by which a score is clearly above another."""


@dataclass(frozen=True)
class Majority:
    """What a model scores that always says the most frequent class."""

    share: float
    rows: int
    apart: float
    """How often two rows have other classes."""

    @property
    def clearly(self) -> float:
        """The accuracy that is clearly above it."""
        return self.share + ERRORS * math.sqrt(self.share * (1 - self.share) / self.rows)


def majority(tried: Tried) -> Majority | str:
    """Majority class of the evaluated rows; or why the script's score cannot be compared with it."""
    counts = [each.labels for each in tried.evaluated if len(each.labels) > 1]
    if not counts:
        return "no evaluation over a DataLoader has class labels"
    largest = max(counts, key=sum)
    rows = sum(largest)
    found = Majority(max(largest) / rows, rows, 1 - sum((each / rows) ** 2 for each in largest))
    best = score(steady(tried.first, tried.again)[0].values())
    if best is None:
        return "the script reports no accuracy that is the same in two unchanged runs"
    if as_share(best) < found.clearly:
        return (
            f"its accuracy, {as_share(best):.3g}, is not clearly above {found.share:.3g}, the share of the most "
            "frequent class; try --full"
        )
    return found
