from __future__ import annotations

import math

import torch
from torch.optim import Optimizer

from harness.watch.check import Check
from harness.watch.events import BackwardBegins, End, StepBegins
from harness.watch.facts.labels import RecentLabels
from harness.watch.facts.losses import NEAR, DifferentiatedLoss, mean_loss
from harness.watch.facts.parameters import Parameters
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
    value or of the batch's cross-entropy; nor is one that an optimizer with `maximize=True` climbs. Where other updates
    do go down, those that climb may be an adversary's, a Lagrange multiplier's or of rows that are to be unlearned; an
    optimizer that searches for a model's input, as of an adversarial image, may climb as well.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.optim.AdamW.html
    """

    id = "update::ascends"
    needs = "backward pass of a loss"
    in_windows = "first"
    formerly = ("update::descends",)
    explains = ("gradients::accumulation-unscaled",)

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.loss = monitor.fact(DifferentiatedLoss)
        self.labels = monitor.fact(RecentLabels)
        self.parameters = monitor.fact(Parameters)
        self.signs: set[int] = set()
        """What the backward passes of the update at hand differentiated: 1 is a loss, -1 its negative, 0 another."""
        self.used = False
        """Whether an optimizer has made a step with their gradients."""
        self.place: str | None = None
        """Of the latest backward pass."""
        self.climbs: tuple[str | None, int, bool] | None = None
        """Where and in which update the first step climbed, and whether by maximize=True."""
        self.negative: tuple[str | None, int, bool] | None = None
        """The first backward pass from the negative of a loss, likewise."""
        self.descends = False
        """Whether any step did not climb: then those that do may be an adversary's, or of a multiplier."""

    def on_backward_begins(self, event: BackwardBegins) -> None:
        if self.used:
            self.signs, self.used = set(), False
        value = self.loss.value
        self.looked |= value is not None
        if value is not None and not math.isfinite(value):
            return  # it has climbed out of sight
        sign = self._sign(event, value) if value else 0
        self.signs.add(sign)
        self.place = event.where
        if sign < 0 and self.negative is None:
            self.negative = event.where, self.monitor.update, False

    def _sign(self, event: BackwardBegins, value: float) -> int:
        if value > 0 and not any(map(_maximizes, self.monitor.optimizers)):
            return 0  # whether it is a loss makes no difference
        means = [mean for call in event.losses if (mean := mean_loss(call)) is not None] or self._by_hand(event)
        if len(means) != 1 or means[0] <= 0:
            return 0
        parts = means[0] / abs(value)
        is_loss = abs(parts - round(parts)) < NEAR * parts and 1 <= round(parts) <= MOST_PARTS
        return int(math.copysign(is_loss, value))

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
        self.used = True
        if not event.sampled or not self.signs or self.parameters.finds_input(event.optimizer):
            return
        maximizes = _maximizes(event.optimizer)
        if self.signs != {1 if maximizes else -1}:
            self.descends = True
        elif self.climbs is None:
            made = self.monitor.optimizers[event.optimizer].made
            self.climbs = (made or event.where) if maximizes else self.place, event.update, maximizes

    def on_end(self, event: End) -> None:
        climbs = self.negative if self.monitor.updated_by_hand and not self.monitor.stepped else self.climbs
        if climbs is None or self.descends:
            return
        where, update, maximizes = climbs
        if maximizes:
            self.found(
                expected="maximize=False, because a loss is differentiated",
                observed="the optimizer climbs: maximize=True",
                where=where,
                update=update,
                hint="Leave maximize out.",
            )
        else:
            self.found(
                expected="the loss itself to be differentiated",
                observed="its negative is, so each update makes the loss larger",
                where=where,
                update=update,
            )


def _maximizes(optimizer: Optimizer) -> bool:
    return all(group.get("maximize") for group in optimizer.param_groups)
