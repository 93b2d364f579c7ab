"""Loss values: whether what is differentiated is another number from batch to batch, and a finite one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.watch.bus import Recogniser
from harness.watch.events import BackwardBegins, End, Fact, LossCall, StepBegins, TrainerMade, ZeroGrad
from harness.watch.facts.losses import DifferentiatedLoss, LossDifferentiated

if TYPE_CHECKING:
    from harness.watch.monitor import Monitor

MIN_EQUAL_LOSSES = 5
"""First batches whose losses must all be the same number: by reasoning, different rows give different losses, and five
alike are no accident."""


@dataclass(frozen=True, eq=False, kw_only=True)
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


@dataclass(frozen=True, eq=False, kw_only=True)
class NotFiniteLossUsed(Fact):
    """An update uses the gradients of a loss that is NaN or infinite. ``where`` is the backward pass."""

    in_windows = "all"
    value: float


@dataclass(frozen=True, eq=False, kw_only=True)
class NotFiniteLossUnused(Fact):
    """A training is over that made no update, and in which a loss was NaN or infinite. ``where`` is the first."""

    in_windows = "all"
    of_run = True
    value: float
    updated_by_hand: bool = False


class LossesOverBatches(Recogniser):
    makes = (LossOverBatches,)

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self._loss = monitor.fact(DifferentiatedLoss)
        self._value: float | None = None
        """Of the latest batch."""
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

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self._latest: LossDifferentiated | None = None
        """A loss that is not finite, while its gradients may still be used."""
        self._first: LossDifferentiated | None = None

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
