from __future__ import annotations

from harness.watch.check import Check
from harness.watch.events import Clip
from harness.watch.facts.gradient_ledger import GradientLedger
from harness.watch.monitor import Monitor


class ClippedWhileScaled(Check):
    """Gradients are clipped while they still carry a GradScaler's factor.

    ## Why is this a bug?
    Before `scaler.unscale_` gradients are thousands of times too large. Clipping at that point cuts nearly all of them
    to the limit, and then they are divided by the factor: every update has the same length, which is much too small.

    ## What to do
    Call scaler.unscale_(optimizer) once, after the backward pass and before clip_grad_norm_.

    ## When it is right
    Never: a limit for scaled gradients would have to follow the scaler's factor, which changes.

    ## References
    - https://docs.pytorch.org/docs/stable/notes/amp_examples.html#gradient-clipping
    """

    id = "gradients::clipped-while-scaled"
    needs = "clipping of gradients"
    in_windows = "all"
    formerly = ("gradients::misplaced-clipping", "gradients::clipped-in-time")

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.gradients = monitor.fact(GradientLedger)

    def on_clip(self, event: Clip) -> None:
        self.looked = True
        if any(ledger.clipped is event and ledger.scaled for ledger in self.gradients.ledgers):
            self.found(
                expected="gradients in their own scale when they are clipped",
                observed="they still carry the GradScaler's factor",
                where=event.where,
                update=self.monitor.update,
            )
