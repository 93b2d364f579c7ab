from __future__ import annotations

import math

import torch

from harness.watch.check import Check
from harness.watch.events import Backward, BackwardBegins, Forward, LossCall
from harness.watch.facts.labels import RecentLabels, equal
from harness.watch.facts.losses import DifferentiatedLoss
from harness.watch.monitor import Monitor

MIN_UPDATES_IN_A_ROW = 2
"""Updates in a row with other labels, or a part of them: by reasoning, one alone may be an accident of equal labels."""

KEPT = 64
"""Forwards whose batch is remembered: more than any window of micro-batches has."""


class OfAnotherBatch(Check):
    """The loss is not that of the batch at hand: its labels are others, some rows are left out, or it is an old one.

    ## Why is this a bug?
    Logits that meet the labels of other rows teach the model chance: with two classes the loss still falls to that of
    the class frequencies. A loss over the first row only learns from a part of the data, and one that is kept from the
    batch before moves the parameters by gradients of an earlier model.

    ## What to do
    Pass the labels on as they come with the batch.

    Call the loss function with all logits and all labels of one batch, and backward() once on each of its losses.

    ## When it is right
    Losses of several forwards of one batch, window losses that are kept and differentiated once, class weights and
    labels that are not among those of the latest batches (mixed or made on the fly) are not reported.
    """

    id = "loss::of-another-batch"
    needs = "labels of classes in a batch of a DataLoader"
    formerly = ("loss::of-the-batch",)

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.loss = monitor.fact(DifferentiatedLoss)
        self.labels = monitor.fact(RecentLabels)
        self.wrong = self.partly = 0
        """Updates with other labels in a row, and with a part of them."""
        self.batch_of: dict[int, int] = {}
        """Of the latest forwards, which batch each was of."""
        self.differentiated: set[int] = set()
        """Those that a backward pass went through."""

    def on_forward(self, event: Forward) -> None:
        if event.gradients and event.batch is not None:
            self.batch_of[event.number] = event.batch.number
            for old in [number for number in self.batch_of if number < event.number - KEPT]:
                del self.batch_of[old]
            self.differentiated.intersection_update(self.batch_of)

    def on_backward_begins(self, event: BackwardBegins) -> None:
        if self.loss.value is None or not math.isfinite(self.loss.value):
            return
        calls = [call for call in event.losses if call.function in ("cross_entropy", "nll_loss")]
        calls = [call for call in calls if call.value is event.root or torch.equal(call.value, event.root)] or calls
        targets = [call.target.detach().cpu() for call in calls if call.target.dim() == 1]
        if not targets or any(target.is_floating_point() for target in targets):
            return
        own, others = self.labels.of(event)
        self.looked |= own is not None
        if own is None:
            self.wrong = 0
        elif all(_is_part(target, own) for target in targets):
            self._of_a_part(own, targets, calls[-1])
        else:
            self._of_others(own, others, targets, calls[-1])

    def _of_a_part(self, own: torch.Tensor, targets: list[torch.Tensor], call: LossCall) -> None:
        self.partly += 1
        if self.partly >= MIN_UPDATES_IN_A_ROW:
            self.found(
                expected=f"the loss of all {len(own)} rows of a batch",
                observed=f"that of {max(len(target) for target in targets)} of them",
                where=call.where,
                update=self.monitor.update,
                hint="Give the loss function all logits and labels of the batch.",
            )

    def _of_others(
        self, own: torch.Tensor, others: list[torch.Tensor], targets: list[torch.Tensor], call: LossCall
    ) -> None:
        if any(equal(target, own) for target in targets):
            self.wrong = 0
            return
        permuted = all(equal(target.sort()[0], own.sort()[0]) for target in targets)
        previous = any(equal(target, older) for target in targets for older in others)
        self.wrong = self.wrong + 1 if permuted or previous else 0
        if self.wrong >= MIN_UPDATES_IN_A_ROW:
            what = "the batch's labels in another order" if permuted else "the labels of another batch"
            self.found(
                expected="the loss of the logits and labels of one batch",
                observed=f"the loss function is given {what}",
                where=call.where,
                update=self.monitor.update,
            )

    def on_backward(self, event: Backward) -> None:
        """A loss may reach back to forwards before the latest backward pass only if those were kept on purpose."""
        if event.batch is None or not event.reached or event.inside_step:
            return
        batch = event.batch.number
        again = [n for n in event.reached & self.differentiated if self.batch_of.get(n, batch) != batch]
        self.differentiated |= event.reached
        if again and self.monitor.is_sampled():
            self.found(
                expected="the loss of the batch at hand, differentiated once",
                observed=f"{len(again)} forward passes of batches before are differentiated again",
                where=event.where,
                update=self.monitor.update,
                hint="Call backward() on each batch's loss alone, without retain_graph; gradients add up anyway.",
            )
        numbers = {forward.number for forward in event.forwards if forward.gradients}
        if numbers and not numbers & event.reached and max(event.reached) < min(numbers):
            self.found(
                expected="the loss of the batch at hand",
                observed="the loss that is differentiated comes from an earlier batch's forward pass",
                where=event.where,
                update=self.monitor.update,
                hint="Call backward() on the loss of the forward just made.",
            )


def _is_part(labels: torch.Tensor, of: torch.Tensor) -> bool:
    """Whether labels are those of the first or the last rows only."""
    size = len(labels)
    return 0 < size < len(of) and (torch.equal(labels, of[:size]) or torch.equal(labels, of[-size:]))
