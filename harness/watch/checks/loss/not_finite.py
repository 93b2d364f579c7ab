from __future__ import annotations

import math

from harness.watch.check import Check
from harness.watch.events import BackwardBegins, End, StepBegins, ZeroGrad
from harness.watch.facts.losses import DifferentiatedLoss
from harness.watch.monitor import Monitor


class NotFinite(Check):
    """The loss that is differentiated is NaN or infinite.

    ## Why is this a bug?
    Its gradients are NaN too, and one optimizer step writes NaN into every parameter that they reach. From then on the
    model predicts nothing, while the loop goes on without an error.

    ## What to do
    Look at the labels (all ignored?), the learning rate, divisions by 0 and logarithms of 0;
    torch.autograd.set_detect_anomaly(True) names the operation.

    ## When it is right
    A loss that a GradScaler has scaled is not reported: the scaler skips such an update and lowers its factor. Neither
    is one whose gradients are cleared before any update uses them, as long as there are other updates.

    ## References
    - https://docs.pytorch.org/docs/stable/autograd.html#anomaly-detection
    """

    needs = "backward pass of a loss"
    in_windows = "all"
    formerly = ("loss::finite",)
    explains = ("model::nondeterministic-eval", "loss::not-raw-logits", "gradients::cut-off")

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.loss = monitor.fact(DifferentiatedLoss)
        self.value: float | None = None
        """A loss that is not finite, while its gradients may still be used."""
        self.where: str | None = None
        self.first: tuple[float, str | None] | None = None

    def on_backward_begins(self, event: BackwardBegins) -> None:
        value = self.loss.value
        self.looked |= value is not None
        if value is not None and not math.isfinite(value) and event.scale == 1.0:
            self.value, self.where = value, event.where
            self.first = self.first or (value, event.where)

    def on_zero_grad(self, event: ZeroGrad) -> None:
        self.value = None

    def on_end(self, event: End) -> None:
        """A script that leaves out each step for it trains nothing, and the loss is why."""
        if self.first is not None and not self.monitor.updates_made:
            value, where = self.first
            and_so = "" if self.monitor.updated_by_hand else ", and no update is made"
            self.found(expected="a finite loss", observed=f"the loss is {value}{and_so}", where=where)

    def on_step_begins(self, event: StepBegins) -> None:
        if self.value is not None:
            self.found(
                expected="a finite loss",
                observed=f"the loss is {self.value}",
                where=self.where,
                update=event.update,
            )
