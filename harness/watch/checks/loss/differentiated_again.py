from __future__ import annotations

from harness.watch.check import Check
from harness.watch.events import Backward, Forward
from harness.watch.monitor import Monitor

KEPT = 64
"""Forwards whose batch is remembered: more than any window of micro-batches has."""


class DifferentiatedAgain(Check):
    """A backward pass goes once more through the forwards of earlier batches.

    ## Why is this a bug?
    A loss that adds up over batches and is differentiated for each of them, with `retain_graph=True`, gives the first
    batch as many gradients as there are batches, and all but the first come after the model has changed. The graphs of
    all batches stay in memory.

    ## What to do
    Call `backward()` on each batch's loss alone, without `retain_graph`; gradients add up anyway.

    ## When it is right
    Losses of several forwards of one batch, and window losses that are kept and differentiated once, are not reported.
    """

    needs = "backward pass of a batch of a DataLoader"
    in_windows = "first"
    formerly = ("loss::of-another-batch", "loss::of-the-batch")
    explains = ("loss::of-earlier-forward",)

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.batch_of: dict[int, int] = {}
        """Of the latest forwards, which batch each was of."""
        self.differentiated: set[int] = set()
        """Those that a backward pass went through."""

    def on_forward(self, event: Forward) -> None:
        if event.gradients and event.batch is not None:
            self.batch_of[event.number] = event.batch.number
            for old in [number for number in self.batch_of if number < event.number - KEPT]:
                del self.batch_of[old]
            self.differentiated.intersection_update(self.batch_of)

    def on_backward(self, event: Backward) -> None:
        if event.batch is None or not event.reached or event.inside_step:
            return
        self.looked = True
        batch = event.batch.number
        again = [n for n in event.reached & self.differentiated if self.batch_of.get(n, batch) != batch]
        self.differentiated |= event.reached
        if again and self.monitor.is_sampled():
            self.found(
                expected="the loss of the batch at hand, differentiated once",
                observed=f"{len(again)} forward passes of batches before are differentiated again",
                where=event.where,
                update=self.monitor.update,
            )
