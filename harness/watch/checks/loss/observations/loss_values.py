"""Loss values: whether what is differentiated is another number from batch to batch, a finite one, or a ratio of 1."""

from __future__ import annotations

import math
from typing import Any

import torch

from harness.watch.events import BackwardBegins, End, Fact, Forward, LossCall, StepBegins, TrainerMade, ZeroGrad
from harness.watch.facts.losses import DifferentiatedLoss, LossDifferentiated
from harness.watch.recogniser import Recogniser
from harness.watch.run.rows import TrainedRows

MIN_EQUAL_LOSSES = 5
"""First batches whose losses must all be the same number: by reasoning, different rows give different losses, and five
alike are no accident."""

MOST_NODES = 64
"""Nodes of a loss's graph that are searched: a ratio is near its end."""

MIN_ROWS = 8


class LossOverBatches(Fact):
    """The losses of two batches have differed, or those of several have been one number, in spite of an update.

    Told once of each. A sum by hand that is 0 may be within a margin, and is not told. ``where`` is the backward pass.
    """

    needs = "losses of several batches"
    in_windows = "first"
    value: float
    """The latest."""
    varied: bool
    label_smoothing: float = 0.0
    """The largest that was asked for so far."""
    of_one_class: bool = False
    """Whether a cross-entropy over a single class was computed so far."""


class NotFiniteLossUsed(Fact):
    """An update uses the gradients of a loss that is NaN or infinite. ``where`` is the backward pass."""

    in_windows = "all"
    value: float


class NotFiniteLossUnused(Fact):
    """A training is over that made no update, and in which a loss was NaN or infinite. ``where`` is the first."""

    in_windows = "all"
    of_run = True
    value: float
    updated_by_hand: bool = False


class LossesOverBatches(Recogniser):
    makes = (LossOverBatches,)

    def begin(self) -> None:
        self._loss = self.fact(DifferentiatedLoss)
        self._value: float | None = None
        """Value of the latest batch's loss."""
        self._batch: int | None = None
        self._batches = 0
        self._told: bool | None = None
        """Whether it varied, where that was told."""
        self._smoothing = 0.0
        self._of_one_class = False

    def on_loss(self, event: LossCall) -> None:
        if event.function == "cross_entropy" and event.at.sampled:
            self._smoothing = max(self._smoothing, event.options.get("label_smoothing", 0.0))
            self._of_one_class |= event.input.dim() == 2 and event.input.shape[1] == 1

    def on_trainer_made(self, event: TrainerMade) -> None:
        self._smoothing = max(self._smoothing, event.trainer.args.label_smoothing_factor)

    def on_backward_begins(self, event: BackwardBegins) -> None:
        value = self._loss.value
        batch = event.batch.number if event.batch else -event.number  # without a DataLoader each may be another
        if self._told or value is None or not math.isfinite(value) or batch == self._batch:
            return
        varied = self._value not in (None, value)
        self._batches += 1
        self._value, self._batch = value, batch
        several = event.batch is not None and (event.batch.of.planned or 2) > 1
        within_margin = value == 0 and not event.losses
        alike = several and event.at.updates_made > 0 and self._batches >= MIN_EQUAL_LOSSES and not within_margin
        if varied or (alike and self._told is None):
            self._told = varied
            self.tell(
                LossOverBatches(
                    value=value,
                    varied=varied,
                    label_smoothing=self._smoothing,
                    of_one_class=self._of_one_class,
                    where=event.where,
                )
            )


class LossesNotFinite(Recogniser):
    makes = (NotFiniteLossUsed, NotFiniteLossUnused)
    _latest: LossDifferentiated | None = None
    """A loss that is not finite, while its gradients may still be used."""
    _first: LossDifferentiated | None = None

    def on_differentiated(self, fact: LossDifferentiated) -> None:
        if not math.isfinite(fact.value) and fact.scale == 1.0:
            self._latest, self._first = fact, self._first or fact

    def on_zero_grad(self, event: ZeroGrad) -> None:
        self._latest = None

    def on_step_begins(self, event: StepBegins) -> None:
        if self._latest is not None:
            self.tell(NotFiniteLossUsed(value=self._latest.value, where=self._latest.where))

    def on_end(self, event: End) -> None:
        if self._first is not None and not event.at.updates_made:
            value, by_hand = self._first.value, self.monitor.updated_by_hand
            self.tell(NotFiniteLossUnused(value=value, updated_by_hand=by_hand, where=self._first.where))


class ProbabilityRatio(Fact):
    """A clipped ratio of probabilities was differentiated, of rows that were trained on before."""

    needs = "ratio of probabilities, of rows that are trained on again"
    rows: int
    ones: int = 0
    """Updates so far in which it was exactly 1 for all rows; 0 where it was not in this one, which is the last told."""


class ProbabilityRatios(Recogniser):
    makes = (ProbabilityRatio,)

    def begin(self) -> None:
        self._rows = self.fact(TrainedRows)
        self._ones = 0
        self._over = False
        """Whether a ratio was seen that is another."""
        self._asked = 0
        """Calls without gradients since the latest backward pass: several collect new rows, which may be like those of
        before."""

    def on_forward(self, event: Forward) -> None:
        self._asked += not event.gradients

    def on_backward_begins(self, event: BackwardBegins) -> None:
        asked, self._asked = self._asked, 0
        if self._over or event.inside_step or not event.at.sampled or asked > 1:
            return
        ratio, known = _ratio(event.root.grad_fn), self._rows
        if ratio is None or not any(known.of.get(of, set()).intersection(rows) for of, rows in known.at_hand.items()):
            return
        self._over = not bool((ratio == 1).all())
        self._ones = 0 if self._over else self._ones + 1
        self.tell(ProbabilityRatio(rows=ratio.numel(), ones=self._ones, where=event.where))


def _ratio(root: Any) -> torch.Tensor | None:
    """What an exponential gave that was clamped, at the end of a loss."""
    waiting, seen, ratios, clamped = [root], 0, [], False
    while waiting and seen < MOST_NODES:
        node = waiting.pop(0)
        if node is None:
            continue
        seen += 1
        name = type(node).__name__
        clamped |= name.startswith("Clamp")
        if name.startswith("Exp"):
            result = getattr(node, "_saved_result", None)
            if torch.is_tensor(result) and result.numel() >= MIN_ROWS:
                ratios.append(result.detach())
            continue
        waiting += [each for each, _ in node.next_functions]
    return ratios[0] if clamped and ratios else None
