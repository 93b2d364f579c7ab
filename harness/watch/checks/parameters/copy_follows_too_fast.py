from __future__ import annotations

from harness.watch.check import Check
from harness.watch.events import Step
from harness.watch.facts.copies import Copies
from harness.watch.monitor import Monitor

MIN_MEANS = 5
"""Means in a row, as averages begin with large weights and go on with small ones. Neither half nor double of it changes
a verdict of the corpus."""

CONSTANT = 1e-3
"""How far the weight may be from one mean to the next. Rounding is below."""


class CopyFollowsTooFast(Check):
    """A moving average of the network takes most of its value from the latest update: its two weights are exchanged.

    ## Why is this a bug?
    A target network or an average should change slowly: by a thousandth to a tenth of the way in each update. With
    `tau * target + (1 - tau) * online` in place of `tau * online + (1 - tau) * target` it is nearly the network itself,
    and stabilises nothing.

    ## What to do
    Exchange the two weights: `target.lerp_(online, tau)` with a small tau.

    ## When it is right
    A copy that is set to the whole network, at whatever interval, is not reported, nor is an average whose weights
    change, such as one that begins with large steps.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.Tensor.lerp_.html
    """

    status = "new"
    needs = "moving average of a network"
    in_windows = "first"

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.copies = monitor.fact(Copies)

    def on_step(self, event: Step) -> None:
        for each in self.copies.all:
            latest = each.weights[-MIN_MEANS:]
            if len(latest) < MIN_MEANS:
                continue
            self.looked = True
            if min(latest) > 0.5 and max(latest) < 1 - CONSTANT and max(latest) - min(latest) < CONSTANT:
                self.found(
                    expected="an average that goes a small part of the way to the network in each update",
                    observed=f"{each.shown} is set to {latest[-1]:.3g} of the network and {1 - latest[-1]:.3g} of "
                    "itself: tau is on the wrong side, and it is nearly the network",
                    where=each.where,
                    update=event.update,
                )
