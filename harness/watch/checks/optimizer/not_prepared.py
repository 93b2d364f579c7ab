from __future__ import annotations

from collections import Counter

from harness.watch.check import Check
from harness.watch.events import AcceleratorBackward, End, Step
from harness.watch.monitor import Monitor

ENOUGH = 8
"""Updates that must have been seen. By reasoning: two windows of the usual four."""


class NotPrepared(Check):
    """The optimizer was not prepared by the Accelerator that accumulates gradients, and steps at each micro-batch.

    ## Why is this a bug?
    `accelerator.prepare` returns an optimizer whose `step()` and `zero_grad()` do nothing until a window is full. The
    original optimizer does not know about that: it steps at each micro-batch, on a gradient that was divided for the
    window. The batch is smaller by the factor by which it was meant to be larger, and so is each update.

    ## What to do
    Use what `accelerator.prepare` returns: `model, optimizer, loader, scheduler = accelerator.prepare(model, optimizer,
    loader, scheduler)`.

    ## When it is right
    Without accumulation, mixed precision in float16 or several processes, a prepared optimizer does the same as the
    original, and nothing is reported.

    ## References
    - https://huggingface.co/docs/accelerate/usage_guides/gradient_accumulation
    """

    status = "new"
    needs = "accumulation by an Accelerator"

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.divides = 1
        self.passes = 0
        """Backward passes by an accelerator that is to accumulate, and was told where."""
        self.steps: Counter[str | None] = Counter()
        """Updates since then, by where their optimizer was made: it may be gone at the end."""

    def on_accelerator_backward(self, event: AcceleratorBackward) -> None:
        if event.steps > 1 and event.entered:
            self.looked, self.passes, self.divides = True, self.passes + 1, event.steps

    def on_step(self, event: Step) -> None:
        if self.passes:
            self.steps[self.monitor.optimizers[event.optimizer].made] += 1

    def on_end(self, event: End) -> None:
        for made, steps in self.steps.items():
            if ENOUGH <= self.passes <= steps:
                self.found(
                    expected=f"one update for {self.divides} backward passes",
                    observed=f"{steps} updates in {self.passes} backward passes, by an optimizer that "
                    "accelerator.prepare was not given, or in the place of the one that it returned",
                    where=made,
                )
