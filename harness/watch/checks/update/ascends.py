from __future__ import annotations

import math

import torch

from harness.watch.check import Check
from harness.watch.events import BackwardBegins, StepBegins
from harness.watch.facts.labels import RecentLabels
from harness.watch.facts.losses import NEAR, DifferentiatedLoss, mean_loss
from harness.watch.monitor import Monitor

MOST_PARTS = 64
"""Micro-batches by whose number a negative loss may have been divided: more than any window has."""


class Ascends(Check):
    """The updates make the loss larger: its negative is differentiated, or the optimizer maximizes.

    ## Why is this a bug?
    An optimizer goes against the gradient of what is differentiated. With the sign turned round, each update makes the
    model worse at its task, quickly and without an error.

    ## What to do
    Take out the minus in front of the loss, or maximize=True.

    ## When it is right
    A negative objective, such as minus a reward, is not reported where it is not the negative of a loss function's
    value or of the batch's cross-entropy. An optimizer with `maximize=True` always is.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.optim.AdamW.html
    """

    id = "update::ascends"
    needs = "backward pass of a loss"
    formerly = ("update::descends",)
    explains = ("gradients::accumulation-unscaled",)

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.loss = monitor.fact(DifferentiatedLoss)
        self.labels = monitor.fact(RecentLabels)

    def on_backward_begins(self, event: BackwardBegins) -> None:
        value = self.loss.value
        self.looked |= value is not None
        if value is None or not math.isfinite(value) or value >= 0:
            return
        means = [mean for call in event.losses if (mean := mean_loss(call)) is not None] or self._by_hand(event)
        if len(means) != 1 or means[0] <= 0:
            return
        parts = -means[0] / value
        if abs(parts - round(parts)) < NEAR * parts and 1 <= round(parts) <= MOST_PARTS:
            self.found(
                expected="the loss itself to be differentiated",
                observed="its negative is, so each update makes the loss larger",
                where=event.where,
                update=self.monitor.update,
            )

    def _by_hand(self, event: BackwardBegins) -> list[float]:
        """The cross-entropy of the logits and the batch's labels, where no function of torch computed a loss."""
        labels, _ = self.labels.of(event)
        logits = event.forwards[-1].logits if event.forwards else None
        if labels is None or logits is None or logits.dim() != 2 or len(labels) != len(logits):
            return []
        if int(labels.min()) < 0 or int(labels.max()) >= logits.shape[1]:
            return []
        return [float(torch.nn.functional.cross_entropy(logits.detach().float().cpu(), labels))]

    def on_step_begins(self, event: StepBegins) -> None:
        if event.sampled and any(group.get("maximize") for group in event.optimizer.param_groups):
            self.found(
                expected="maximize=False, because a loss is differentiated",
                observed="the optimizer climbs: maximize=True",
                where=self.monitor.optimizers[event.optimizer].made or event.where,
                update=event.update,
                hint="Leave maximize out.",
            )
