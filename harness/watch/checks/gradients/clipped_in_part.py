from __future__ import annotations

from harness.watch.check import Check
from harness.watch.events import Backward, Clip
from harness.watch.facts.gradient_ledger import Added, GradientLedger
from harness.watch.monitor import Monitor


class ClippedInPart(Check):
    """Gradients are clipped after some of an update's micro-batches, and those of further ones are added to them.

    ## Why is this a bug?
    Each call clips only the sum so far: the first micro-batches are scaled down again and again, the last one counts in
    full, and the gradient that the optimizer uses may still exceed the limit.

    ## What to do
    Clip right before optimizer.step(), only where the window of accumulated micro-batches is full.

    ## When it is right
    Several backward passes of one batch with clipping in between are not reported.

    ## References
    - https://huggingface.co/docs/accelerate/usage_guides/gradient_accumulation
    """

    id = "gradients::clipped-in-part"
    needs = "clipping of gradients"
    in_windows = "all"
    formerly = ("gradients::misplaced-clipping", "gradients::clipped-in-time")

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.gradients = monitor.fact(GradientLedger)

    def on_clip(self, event: Clip) -> None:
        self.looked = True

    def on_backward(self, event: Backward) -> None:
        for added in self.gradients.added:
            if added.clipped is not None and not _of_one_batch(added):
                self.found(
                    expected="clipping once all micro-batches of the update have been added up",
                    observed="it clips after a micro-batch, and then adds the gradients of further ones",
                    where=added.clipped.where,
                    update=self.monitor.update,
                )


def _of_one_batch(added: Added) -> bool:
    """Whether it is one of several backward passes of one batch."""
    return added.entry.batch is not None and added.before is not None and added.before.batch == added.entry.batch
