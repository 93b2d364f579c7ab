from __future__ import annotations

from harness.watch.check import Check
from harness.watch.events import Unscale
from harness.watch.facts.gradient_ledger import GradientLedger
from harness.watch.monitor import Monitor


class NotScaled(Check):
    """A GradScaler divides the gradients of a loss that it did not multiply.

    ## Why is this a bug?
    `scaler.scale(loss)` multiplies the loss, by 65536 at first, and `scaler.step(optimizer)` divides the gradients by
    the same factor. If the script calls `backward()` on the loss itself, they are only divided: the updates of SGD come
    to nothing, and those of Adam are lost in its epsilon.

    ## What to do
    Call backward() on what scaler.scale(loss) returns: scaler.scale(loss).backward().

    ## When it is right
    A scaler that is switched off (`enabled=False`) divides nothing and is not reported. Neither are gradients if some
    of their backward passes were scaled.

    ## References
    - https://docs.pytorch.org/docs/stable/notes/amp_examples.html
    """

    id = "gradients::not-scaled"
    needs = "GradScaler"
    in_windows = "all"
    formerly = ("gradients::wrong-scale",)
    explains = ("update::not-as-defined",)

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.gradients = monitor.fact(GradientLedger)

    def on_unscale(self, event: Unscale) -> None:
        ledger = self.gradients.of(event.optimizer)
        fresh = ledger.unused if ledger is not None else []
        self.looked |= bool(fresh)
        if fresh and not any(entry.scaled for entry in fresh):
            self.found(
                expected="gradients of a loss that the GradScaler multiplied, when it divides them",
                observed="those of a loss that was not scaled, so every gradient is made thousands of times too small",
                where=fresh[-1].where,
                update=self.monitor.update,
            )
