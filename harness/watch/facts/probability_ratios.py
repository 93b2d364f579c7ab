"""Probability ratios: that of new to old probabilities in a loss, of rows that are trained on again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from harness.watch.bus import Recogniser
from harness.watch.events import BackwardBegins, Fact
from harness.watch.facts.rows_by_hand import RowsByHand

if TYPE_CHECKING:
    from harness.watch.monitor import Monitor

MOST_NODES = 64
"""Nodes of a loss's graph that are searched: a ratio is near its end. Neither half nor double of it changes a verdict
of the corpus."""

MIN_ROWS = 8


@dataclass(frozen=True, eq=False, kw_only=True)
class ProbabilityRatio(Fact):
    """A clipped ratio of probabilities was differentiated, of rows that were trained on before."""

    needs = "ratio of probabilities, of rows that are trained on again"
    rows: int
    ones: int = 0
    """Updates so far in which it was exactly 1 for all rows; 0 where it was not in this one, which is the last told."""


class ProbabilityRatios(Recogniser):
    makes = (ProbabilityRatio,)

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self._rows = monitor.fact(RowsByHand)
        self._ones = 0
        self._over = False
        """Whether a ratio was seen that is another."""

    def on_backward_begins(self, event: BackwardBegins) -> None:
        if self._over or event.inside_step or not event.at.sampled:
            return
        ratio, known = _ratio(event.root.grad_fn), self._rows
        if ratio is None or not any(known.trained[of].intersection(keys) for of, keys in known.given.items()):
            return
        self._over = not bool((ratio == 1).all())
        self._ones = 0 if self._over else self._ones + 1
        self.tell(ProbabilityRatio(rows=ratio.numel(), ones=self._ones, where=event.where))


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
