from __future__ import annotations

from typing import Any

import torch

from harness.watch.check import Check
from harness.watch.events import BackwardBegins
from harness.watch.facts.rows_by_hand import RowsByHand
from harness.watch.monitor import Monitor

MOST_NODES = 64
"""Nodes of a loss's graph that are searched: a ratio is near its end. Neither half nor double of it changes a verdict
of the corpus."""

MIN_ROWS = 8
MIN_UPDATES = 4
"""Updates on rows that were trained on before, in all of which the ratio is 1. Neither half nor double of it changes a
verdict of the corpus."""


class RatioAlwaysOne(Check):
    """The ratio of new to old probabilities is 1 in every update: the old policy is the current one.

    ## Why is this a bug?
    PPO goes over the same rows several times, and clips the ratio of the policy's probabilities now to those from when
    the rows were collected. If the script recomputes the old log-probabilities in each update, from the current policy
    or from a fresh copy of it, the ratio is 1 and clipping never acts: nothing holds the policy back.

    ## What to do
    Store the log-probabilities when the rows are collected, and use these in all updates on them.

    ## When it is right
    Algorithms that make one update per rollout have this ratio by design (`exp(logp - logp.detach())`) and are not
    reported: only rows that were trained on before count. The first update on rows may have this ratio.

    ## References
    - https://arxiv.org/abs/1707.06347
    """

    status = "new"
    needs = "ratio of probabilities, of rows that are trained on again"

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.rows = monitor.fact(RowsByHand)
        self.ones = 0
        self.over = False
        """Whether a ratio was seen that is another."""

    def on_backward_begins(self, event: BackwardBegins) -> None:
        if self.over or event.inside_step or not self.monitor.is_sampled():
            return
        ratio = _ratio(event.root.grad_fn)
        if ratio is None or not any(self.rows.trained[of].intersection(keys) for of, keys in self.rows.given.items()):
            return
        self.looked = True
        if not bool((ratio == 1).all()):
            self.over = True
            return
        self.ones += 1
        if self.ones == MIN_UPDATES:
            self.found(
                expected="a ratio of probabilities that leaves 1 in the second update on the same rows",
                observed=f"exactly 1 for all {ratio.numel()} rows in each of {MIN_UPDATES} updates on rows that were "
                "trained on before: the old policy's probabilities are the current one's, and nothing is ever clipped",
                where=event.where,
                update=self.monitor.update,
            )


def _ratio(root: Any) -> torch.Tensor | None:
    """What an exponential gave that was clamped, at the end of a loss."""
    waiting, seen, ratios, clamped = [root], 0, [], False
    while waiting and seen < MOST_NODES:
        node = waiting.pop(0)
        if node is None:
            continue
        seen += 1
        name = type(node).__name__
        clamped |= name.startswith("Clamp")
        if name.startswith("Exp"):
            result = getattr(node, "_saved_result", None)
            if torch.is_tensor(result) and result.numel() >= MIN_ROWS:
                ratios.append(result.detach())
            continue
        waiting += [each for each, _ in node.next_functions]
    return ratios[0] if clamped and ratios else None
