from __future__ import annotations

from collections import Counter
from typing import Any

import torch

from harness.watch.check import Check
from harness.watch.events import Combined, End
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


class TermAlwaysZero(Check):
    """A term of the loss is exactly 0 in every update: it compares something with itself.

    ## Why is this a bug?
    A divergence from a reference that is the model itself, the consistency of an output with that same output, a
    penalty on the distance of weights from themselves: each is 0, with a gradient of 0, and holds nothing back.

    ## What to do
    Look at the two sides of the term: a copy is made by `copy.deepcopy`, and a second pass has an output of its own.

    ## When it is right
    A term that is weighted by 0, and one that is 0 within a margin (a hinge, a clamp, a mask), are not reported.
    Neither is one that leaves 0 at any time, as the divergence from a reference does after the first update.
    """

    status = "new"
    needs = "sum of losses"
    severity = "warning"

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.times: Counter[str | None] = Counter()
        self.zeros: Counter[str | None] = Counter()

    def on_combined(self, event: Combined) -> None:
        if event.sign == "*":
            return
        self.times[event.where] += 1
        if self.times[event.where] > ALWAYS and not self.monitor.is_sampled():
            return
        self.looked = True
        parts = [each for each in event.parts if torch.is_tensor(each) and each.requires_grad and each.numel() == 1]
        zero = [each for each in parts if each.detach().item() == 0 and not _may_be_zero(each.grad_fn)]
        # Where both are 0, what they are added to says it.
        self.zeros[event.where] += 1 if 0 < len(zero) < len(parts) else -10 * MIN_TIMES

    def on_end(self, event: End) -> None:
        for where, zeros in self.zeros.items():
            if min(zeros, ALWAYS) == ALWAYS and self.times[where] >= MIN_TIMES:
                self.found(
                    expected="a term that is other than 0 in some update",
                    observed=f"one that is added here is exactly 0 in each of {zeros} updates that were looked at, of "
                    f"{self.times[where]}: both of its sides are the same, and it has no effect",
                    where=where,
                )


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
