"""Ascent: whether the updates of a training make its loss larger, and by what."""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch.optim import Optimizer

from harness.watch.events import BackwardBegins, End, Fact, StepBegins
from harness.watch.facts.labels import RecentLabels
from harness.watch.facts.losses import LOSS_RATIO_RTOL, DifferentiatedLoss, mean_loss
from harness.watch.facts.parameters import Parameters
from harness.watch.recogniser import Recogniser

MOST_PARTS = 64
"""Micro-batches by whose number a negative loss may have been divided: more than any window has."""


class LossFollowed(Fact):
    """A run is over whose losses were looked at: whether its updates made them larger.

    ``where`` is the backward pass of the first that did, or, if the optimizer did it, where that was made.
    """

    needs = "backward pass of a loss"
    in_windows = "first"
    of_run = True
    climbs: Literal["no", "by the loss", "by the optimizer"] = "no"
    """Cause of the climbing of all updates: the negative of a loss was differentiated, or ``maximize=True``."""
    update: int = 1
    """The first update that did."""


class Ascent(Recogniser):
    """Signs of what is differentiated, beside the directions in which the optimizers go."""

    makes = (LossFollowed,)

    def begin(self) -> None:
        self._loss = self.fact(DifferentiatedLoss)
        self._labels = self.fact(RecentLabels)
        self._parameters = self.fact(Parameters)
        self._looked = False
        """Whether any loss was looked at."""
        self._signs: set[int] = set()
        """What the backward passes of the update at hand differentiated: 1 is a loss, -1 its negative, 0 another."""
        self._used = False
        """Whether an optimizer has made a step with their gradients."""
        self._place: str | None = None
        """Place of the latest backward pass."""
        self._climbs: LossFollowed | None = None
        self._negative: LossFollowed | None = None
        """The first backward pass from the negative of a loss."""
        self._descends = False
        """Whether any step did not climb: then those that do may be an adversary's, or of a multiplier."""

    def on_end(self, event: End) -> None:
        if self._looked:
            climb = self._negative if self.monitor.updated_by_hand and not self.monitor.stepped else self._climbs
            self.tell(LossFollowed() if self._descends or climb is None else climb)

    def on_backward_begins(self, event: BackwardBegins) -> None:
        if self._used:
            self._signs, self._used = set(), False
        value = self._loss.value
        self._looked |= value is not None
        if value is not None and not math.isfinite(value):
            return  # it has climbed out of sight
        sign = self._sign(event, value) if value else 0
        self._signs.add(sign)
        self._place = event.where
        if sign < 0 and self._negative is None:
            self._negative = LossFollowed(climbs="by the loss", update=event.at.update, where=event.where)

    def _sign(self, event: BackwardBegins, value: float) -> int:
        if value > 0 and not any(map(_maximizes, self.monitor.optimizers)):
            return 0  # whether it is a loss makes no difference
        means = [mean for call in event.losses if (mean := mean_loss(call)) is not None] or self._by_hand(event)
        if len(means) != 1 or means[0] <= 0:
            return 0
        parts = means[0] / abs(value)
        is_loss = abs(parts - round(parts)) < LOSS_RATIO_RTOL * parts and 1 <= round(parts) <= MOST_PARTS
        return int(math.copysign(is_loss, value))

    def _by_hand(self, event: BackwardBegins) -> list[float]:
        """The cross-entropy of the logits and the batch's labels, where no function of torch computed a loss."""
        labels, _ = self._labels.of(event)
        logits = event.forwards[-1].logits if event.forwards else None
        if labels is None or logits is None or logits.dim() != 2 or len(labels) != len(logits):
            return []
        if int(labels.min()) < 0 or int(labels.max()) >= logits.shape[1]:
            return []
        return [float(torch.nn.functional.cross_entropy(logits.detach().float().cpu(), labels))]

    def on_step_begins(self, event: StepBegins) -> None:
        self._used = True
        if not event.sampled or not self._signs or self._parameters.finds_input(event.optimizer):
            return
        maximizes = _maximizes(event.optimizer)
        if self._signs != {1 if maximizes else -1}:
            self._descends = True
        elif self._climbs is None:
            where = event.made if maximizes else self._place
            how: Literal["by the loss", "by the optimizer"] = "by the optimizer" if maximizes else "by the loss"
            self._climbs = LossFollowed(climbs=how, update=event.update, where=where)


def _maximizes(optimizer: Optimizer) -> bool:
    return all(group.get("maximize") for group in optimizer.param_groups)
