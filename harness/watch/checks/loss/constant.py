from __future__ import annotations

import math

from harness.watch.check import Check
from harness.watch.events import BackwardBegins, LossCall, TrainerMade
from harness.watch.facts.losses import DifferentiatedLoss
from harness.watch.monitor import Monitor

MIN_EQUAL_LOSSES = 5
"""First batches whose losses must all be the same number: by reasoning, different rows give different losses, and five
alike are no accident."""

MAX_LABEL_SMOOTHING = 0.9
"""Label smoothing from which on the labels hardly count. Papers use 0.1, and 1.0 leaves nothing of them. Neither half
nor double of it changes a verdict of the corpus."""


class Constant(Check):
    """The loss is the same whatever the model says of the rows, so that nothing can be learned from it.

    ## Why is this a bug?
    A loss that does not depend on the logits or the labels has gradients of zero, or gradients that say nothing about
    the task. The usual cases: a cross-entropy over a single class, which is always 0, and label smoothing of 1, which
    gives all classes the same target.

    ## What to do
    Look at the loss function, its options and the number of labels.

    A head for `cross_entropy` needs one logit for each class: `num_labels=2` for two classes. With one logit, use
    `binary_cross_entropy_with_logits`.

    ## When it is right
    Label smoothing below 0.9 is not reported. Neither is a loss that stays the same before the first update or because
    a loader has a single batch, or a loss with a margin, such as a triplet loss, that is 0.

    ## References
    - https://github.com/huggingface/transformers/issues/45479
    """

    needs = "losses of several batches"
    in_windows = "first"
    formerly = ("loss::varies",)
    explains = ("gradients::cut-off",)

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.loss = monitor.fact(DifferentiatedLoss)
        self.value: float | None = None
        """Of the latest batch."""
        self.batch: int | None = None
        self.batches = 0
        self.varied = False
        self.explained = False
        """Whether it has been said why it must be constant."""

    def on_loss(self, event: LossCall) -> None:
        if event.function != "cross_entropy" or not self.monitor.is_sampled():
            return
        smoothing = event.options.get("label_smoothing", 0.0)
        if smoothing >= MAX_LABEL_SMOOTHING:
            self._found(f"label_smoothing={smoothing} gives all classes the same target", event.where)
        if event.input.dim() == 2 and event.input.shape[1] == 1:
            self._found("the cross-entropy has one class only, so it is 0 whatever the model says", event.where)

    def on_trainer_made(self, event: TrainerMade) -> None:
        smoothing = event.trainer.args.label_smoothing_factor
        if smoothing >= MAX_LABEL_SMOOTHING:
            self._found(f"label_smoothing_factor={smoothing} gives all classes the same target", event.where)

    def on_backward_begins(self, event: BackwardBegins) -> None:
        value = self.loss.value
        batch = event.batch.number if event.batch else -event.number  # without a DataLoader each may be another
        if value is None or not math.isfinite(value) or batch == self.batch:
            return
        self.varied = self.varied or self.value not in (None, value)
        self.batches += 1
        self.looked |= self.varied
        self.value, self.batch = value, batch
        several = event.batch is not None and (event.batch.of.planned or 2) > 1
        updated = self.monitor.updates_made > 0
        within_margin = value == 0 and not event.losses
        constant = several and updated and not self.varied and self.batches >= MIN_EQUAL_LOSSES
        if constant and not within_margin and not self.explained:
            self._found(f"it has been exactly {value:.6g} for {MIN_EQUAL_LOSSES} batches", event.where)

    def _found(self, observed: str, where: str | None) -> None:
        self.explained = True
        self.found(
            expected="a loss that depends on the logits and the labels",
            observed=observed,
            where=where,
            update=self.monitor.update,
        )
