from __future__ import annotations

from harness.watch.check import Check
from harness.watch.events import AcceleratorBackward, End, Step
from harness.watch.monitor import Monitor

ENOUGH = 8
"""Backward passes that must have been seen. By reasoning: two windows of the usual four."""


class AccumulationNotEntered(Check):
    """Accelerate was told to accumulate gradients, and the loop never enters `accelerator.accumulate`.

    ## Why is this a bug?
    `Accelerator(gradient_accumulation_steps=4)` divides each loss by four in `accelerator.backward`.
    `with accelerator.accumulate(model)` decides which steps wait for the others. Without it the optimizer steps at each
    micro-batch, on a quarter of its loss: four times as many updates, each on a quarter of the rows.

    ## What to do
    Put the body of the loop into `with accelerator.accumulate(model):`.

    ## When it is right
    A loop that counts the micro-batches itself and steps at every fourth one is not reported.

    ## References
    - https://huggingface.co/docs/accelerate/usage_guides/gradient_accumulation
    """

    id = "gradients::accumulation-not-entered"
    status = "new"
    needs = "accumulation by an Accelerator"

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.passes = 0
        """Backward passes by an accelerator that is to accumulate and whose ``accumulate`` was never entered."""
        self.steps = 0
        self.entered = False
        self.where: str | None = None
        self.divides = 1

    def on_accelerator_backward(self, event: AcceleratorBackward) -> None:
        if event.steps <= 1:
            return
        self.looked = True
        self.entered = self.entered or event.entered
        self.passes += not event.entered
        self.divides, self.where = event.steps, self.where or event.where

    def on_step(self, event: Step) -> None:
        self.steps += self.passes > 0

    def on_end(self, event: End) -> None:
        if not self.entered and ENOUGH <= self.passes <= self.steps:
            self.found(
                expected=f"one update for {self.divides} backward passes, within accelerator.accumulate",
                observed=f"accelerator.accumulate is never entered: {self.steps} updates in {self.passes} backward "
                f"passes, each on 1/{self.divides} of its loss",
                where=self.where,
            )
