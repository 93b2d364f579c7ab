from __future__ import annotations

from torch.optim import Optimizer

from harness.watch.check import Check
from harness.watch.events import StepBegins, Unscale
from harness.watch.facts.gradient_ledger import GradientLedger
from harness.watch.monitor import Monitor


class NotUnscaled(Check):
    """An update uses gradients that still carry a GradScaler's factor.

    ## Why is this a bug?
    `scaler.scale(loss)` multiplies the loss, by 65536 at first, and with it the gradients. `scaler.step(optimizer)`
    divides them again and skips an update whose gradients are infinite. If the script calls `optimizer.step()` instead,
    they are thousands of times too large, and no update is skipped.

    ## What to do
    Call scaler.step(optimizer) instead of optimizer.step(), and scaler.update() after it.

    ## When it is right
    Gradients that the script divides itself before the step, and a scaler that is switched off (`enabled=False`), are
    not reported. Neither are optimizers that handle the scale themselves (`grad_scale` of fused ones).

    ## References
    - https://docs.pytorch.org/docs/stable/notes/amp_examples.html
    """

    id = "gradients::not-unscaled"
    needs = "GradScaler"
    in_windows = "all"
    formerly = ("gradients::wrong-scale",)
    explains = ("update::not-as-defined",)

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.gradients = monitor.fact(GradientLedger)
        self.unscaled: Optimizer | None = None
        """The optimizer whose gradients were unscaled since the latest step."""

    def on_unscale(self, event: Unscale) -> None:
        self.unscaled = event.optimizer

    def on_step_begins(self, event: StepBegins) -> None:
        window, unscaled = self.gradients.window, self.unscaled is event.optimizer
        self.unscaled = None
        self.looked |= unscaled
        if window is None or window.empty or unscaled or getattr(event.optimizer, "grad_scale", None) is not None:
            return
        scaled = bool(window.fresh) and all(entry.scaled for entry in window.fresh)
        self.looked |= scaled
        if scaled and window.ledger.as_left:
            self.found(
                expected="gradients in their own scale when an update uses them",
                observed="they still carry the GradScaler's factor: optimizer.step() was called, and not the scaler's",
                where=event.where,
                update=event.update,
            )
