from __future__ import annotations

from torch.optim import Optimizer

from harness.watch.check import Check
from harness.watch.events import StepBegins, Unscale
from harness.watch.facts.gradient_ledger import GradientLedger
from harness.watch.monitor import Monitor


class WrongScale(Check):
    """A GradScaler's factor is taken out of gradients that do not have it, or left in those that an update uses.

    ## Why is this a bug?
    `scaler.scale(loss)` multiplies the loss, by 65536 at first, and `scaler.step(optimizer)` divides the gradients by
    as much. Where `backward()` is called on the loss itself, they are divided only: the updates of SGD are nothing, and
    those of Adam are lost in its epsilon. Where `optimizer.step()` is called instead of the scaler's, they are
    thousands of times too large, and infinite gradients are not left out.

    ## What to do
    Write scaler.scale(loss).backward() and then scaler.step(optimizer).

    ## When it is right
    A scaler that is switched off (`enabled=False`) does neither, and is not reported.

    ## References
    - https://docs.pytorch.org/docs/stable/notes/amp_examples.html
    """

    id = "gradients::wrong-scale"
    needs = "optimizer step after a backward pass"
    in_windows = "all"
    explains = ("update::not-as-defined",)

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.gradients = monitor.fact(GradientLedger)
        self.unscaled: Optimizer | None = None
        """The optimizer whose gradients were unscaled since the latest step."""

    def on_unscale(self, event: Unscale) -> None:
        ledger = self.gradients.of(event.optimizer)
        self.unscaled = event.optimizer
        fresh = ledger.unused if ledger is not None else []
        if fresh and not any(entry.scaled for entry in fresh):
            self.found(
                expected="gradients of a loss that the GradScaler multiplied, when it divides them",
                observed="those of a loss that was not scaled, so every gradient is made thousands of times too small",
                where=fresh[-1].where,
                update=self.monitor.update,
                hint="Call backward() on what scaler.scale(loss) returns: scaler.scale(loss).backward().",
            )

    def on_step_begins(self, event: StepBegins) -> None:
        window, unscaled = self.gradients.window, self.unscaled is event.optimizer
        self.unscaled = None
        self.looked |= window is not None
        if window is None or window.empty or unscaled or getattr(event.optimizer, "grad_scale", None) is not None:
            return
        if window.fresh and all(entry.scaled for entry in window.fresh) and window.ledger.as_left:
            self.found(
                expected="gradients in their own scale when an update uses them",
                observed="they still carry the GradScaler's factor: optimizer.step() was called, and not the scaler's",
                where=event.where,
                update=event.update,
                hint="Call scaler.step(optimizer) instead of optimizer.step(), and scaler.update() after it.",
            )
