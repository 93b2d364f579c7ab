from __future__ import annotations

from harness.watch.check import Check
from harness.watch.events import LossCall


class Broadcast(Check):
    """Predictions and targets have different shapes, so that the loss compares each prediction with every target.

    ## Why is this a bug?
    Predictions of shape (16, 1) and targets of shape (16,) are broadcast to (16, 16): all rows share the mean of all
    targets, and the model learns to predict that mean for everything. torch warns once and goes on.

    ## What to do
    Give both the same shape (squeeze(-1) or unsqueeze(-1)).

    ## When it is right
    `cross_entropy` and `nll_loss`, whose targets have one dimension less, are not reported.

    ## References
    - https://github.com/pytorch/pytorch/issues/4938
    """

    id = "loss::broadcast"
    needs = "loss whose target has the prediction's shape"
    formerly = ("loss::shapes-agree",)

    def on_loss(self, event: LossCall) -> None:
        if not self.monitor.is_sampled() or event.function in ("cross_entropy", "nll_loss"):
            return
        self.looked = True
        if event.input.shape != event.target.shape:
            self.found(
                expected=f"a target of the prediction's shape, {tuple(event.input.shape)}",
                observed=f"one of shape {tuple(event.target.shape)}, which {event.function} broadcasts: each row is "
                "compared with every target",
                where=event.where,
                update=self.monitor.update,
            )
