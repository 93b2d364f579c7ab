"""Zero terms: which terms of a loss are exactly 0 whenever they are looked at."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from harness.watch.bus import Recogniser
from harness.watch.events import Combined, End, Fact

if TYPE_CHECKING:
    from harness.watch.monitor import Monitor

ALWAYS, MIN_TIMES = 8, 12
"""Additions in each line that are looked at whatever the update is, and from which on a term that is 0 stays so. A
guess."""

MOST_NODES = 12
"""Nodes of a term's graph that are searched for what may be 0 by right. A hinge is near the end. Neither half nor
double of it changes a verdict of the corpus."""

MAY_BE_ZERO = ("Relu", "Clamp", "Max", "Min", "Where", "Threshold", "Abs", "HardShrink", "Softplus", "Masked")
"""Operations of penalties that are 0 within a margin."""

OF_A_LAYER = ("Addmm", "Mm", "Bmm", "Convolution", "Softmax", "LogSoftmax", "Embedding", "NativeLayerNorm", "NllLoss")
"""Where the term's own operations end, and those of a model begin."""


@dataclass(frozen=True, eq=False, kw_only=True)
class TermOverTraining(Fact):
    """A training is over in which terms of a loss were added up. ``where`` is the line."""

    needs = "sum of losses"
    of_run = True
    zeros: int
    """Additions in which one of two terms was 0, and by no margin, mask or weight; below 0 if it was not in some."""
    times: int
    """Additions, of which the first and those in updates that are looked at tell."""


class ZeroTerms(Recogniser):
    makes = (TermOverTraining,)

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self._times: Counter[str | None] = Counter()
        self._zeros: Counter[str | None] = Counter()

    def on_combined(self, event: Combined) -> None:
        if event.sign == "*":
            return
        self._times[event.where] += 1
        if self._times[event.where] > ALWAYS and not event.at.sampled:
            return
        parts = [each for each in event.parts if torch.is_tensor(each) and each.requires_grad and each.numel() == 1]
        zero = [each for each in parts if each.detach().item() == 0 and not _may_be_zero(each.grad_fn)]
        # Where both are 0, what they are added to says it.
        self._zeros[event.where] += 1 if 0 < len(zero) < len(parts) else -10 * MIN_TIMES

    def on_end(self, event: End) -> None:
        for where, zeros in self._zeros.items():
            self.tell(TermOverTraining(zeros=zeros, times=self._times[where], where=where))


def _may_be_zero(root: Any) -> bool:
    """Whether something near the end of its graph makes numbers 0: a margin, a mask, or a weight of 0."""
    waiting, seen = [root], 0
    while waiting and seen < MOST_NODES:
        node = waiting.pop(0)
        if node is None or type(node).__name__.startswith(OF_A_LAYER):
            continue
        seen += 1
        name = type(node).__name__
        if name.startswith(MAY_BE_ZERO):
            return True
        if name.startswith("Mul"):
            factors = [getattr(node, f"_saved_{side}", None) for side in ("self", "other")]
            constant = [each for each in factors if torch.is_tensor(each) and not each.requires_grad]
            if any(bool((each == 0).any()) for each in constant) or (None in factors and not constant):
                return True  # a weight that is a number is not kept: it may be 0
        waiting += [each for each, _ in node.next_functions]
    return False
