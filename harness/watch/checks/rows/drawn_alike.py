from __future__ import annotations

import torch

from harness.watch.check import Check
from harness.watch.events import Drawn, OptimizerMade
from harness.watch.monitor import Monitor

MIN_DRAWS = 3
"""Draws in a row, of two of which chance would make two permutations. By reasoning: eight rows have 40320."""

MIN_ROWS = 16
"""Rows that are worth drawing an order of. Neither half nor double of it changes a verdict of the corpus."""

MOST_ROWS = 1_000_000
"""Rows up to which a permutation is kept."""


class DrawnAlike(Check):
    """The same permutation is drawn in each epoch: something seeds the generator anew before it.

    ## Why is this a bug?
    With a seed before each draw, the rows always come in the same order, and if only some of them are drawn, the rest
    are never seen.

    ## What to do
    Seed once, before the training, or give `torch.randperm` a generator of its own that goes on from epoch to epoch.

    ## When it is right
    The same order for another training, with an optimizer of its own, is not reported: folds and repetitions are meant
    to be alike.

    ## References
    - https://docs.pytorch.org/docs/stable/notes/randomness.html
    """

    status = "new"
    needs = "permutations that the script draws while it trains"

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.latest: dict[str, tuple[torch.Tensor, int, int]] = {}
        """By the line: the permutation, how often it came in a row, and the updates made when it came last."""

    def on_optimizer_made(self, event: OptimizerMade) -> None:
        self.latest.clear()

    def on_drawn(self, event: Drawn) -> None:
        made, drawn = self.monitor.updates_made, event.permutation
        if event.where is None or not MIN_ROWS <= len(drawn) <= MOST_ROWS or not made:
            return
        before, times, updates = self.latest.get(event.where, (drawn[:0], 0, -1))
        if updates == made:
            return  # nothing was trained in between
        self.looked |= times > 0
        times = times + 1 if torch.equal(before, drawn) else 1
        self.latest[event.where] = drawn.clone(), times, made
        if times == MIN_DRAWS:
            self.found(
                expected="another permutation in each epoch",
                observed=f"the same permutation of {len(drawn)} rows, {times} times in a row: the generator is seeded "
                "again before each draw",
                where=event.where,
                update=self.monitor.update,
            )
