from __future__ import annotations

import math
from collections.abc import Sequence

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

MOST_COMPARED = 10**7
"""Numbers that are compared to find which rows a loss function was given."""

MOST_FACTORS = 8
"""Operations between a loss function's value and what is differentiated: by reasoning, a division by the number of
micro-batches and a GradScaler's factor are two."""


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
    labels that are not among those of the latest batches (mixed or made on the fly) are not reported. Neither are
    logits that are put in another order, or selected, together with their labels, nor a loss of some rows beside
    another one.
    """

    id = "loss::of-another-batch"
    needs = "labels of classes in a batch of a DataLoader"
    in_windows = "first"
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
        calls = [call for call in calls if call.target.dim() == 1 and call.input.dim() == 2]
        if not calls or any(call.target.is_floating_point() for call in calls):
            return
        own, others = self.labels.of(event)
        self.looked |= own is not None
        given = [(call, _places(call.input.detach(), event.forwards)) for call in calls]
        if own is None or any(places is None for _, places in given):
            self.wrong = 0  # the logits were changed on their way, and their rows are not known
            return
        targets = [call.target.detach().cpu() for call in calls]
        aligned = all(_belong(target, own, places) for target, (_, places) in zip(targets, given, strict=True))
        a_part = all(_is_part(target, own) for target in targets)
        if aligned:
            a_part = a_part and _is_all(event.root, calls[-1].value) and all(_is_stretch(places) for _, places in given)
        if a_part:
            self._of_a_part(own, targets, calls[-1])
        elif not aligned:
            self._of_others(own, others, targets, calls[-1])
        else:
            self.wrong = self.partly = 0

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


def _places(given: torch.Tensor, forwards: Sequence[Forward]) -> torch.Tensor | None:
    """Which rows of a model's logits a loss function was given, (rows, rows of the model); None where it is none."""
    for forward in reversed(forwards):
        logits = None if forward.logits is None else forward.logits.detach()
        if logits is None or logits.dim() != 2 or logits.shape[1] != given.shape[1]:
            continue
        if len(given) * logits.numel() > MOST_COMPARED:
            return None
        alike = (given.to(logits.dtype).unsqueeze(1) == logits.unsqueeze(0)).all(2)
        if bool(alike.any(1).all()):
            return alike.cpu()
    return None


def _belong(target: torch.Tensor, own: torch.Tensor, places: torch.Tensor | None) -> bool:
    """Whether each label is that of its row of logits."""
    if places is None or places.shape != (len(target), len(own)):
        return False
    return bool((places & (target.detach().cpu().unsqueeze(1) == own)).any(1).all())


def _is_stretch(places: torch.Tensor | None) -> bool:
    """Whether the rows are the first or the last ones, in their order."""
    if places is None:
        return False
    size = min(places.shape)
    return bool(places[:, :size].diagonal().all() or places[:, -size:].diagonal().all())


def _is_all(root: torch.Tensor, value: torch.Tensor) -> bool:
    """Whether what is differentiated is this loss alone, multiplied by whatever number."""
    node = root.grad_fn
    for _ in range(MOST_FACTORS):
        if node is None or node is value.grad_fn:
            return node is not None
        before = [each for each, _ in node.next_functions if each is not None]
        node = before[0] if len(before) == 1 else None
    return False


def _is_part(labels: torch.Tensor, of: torch.Tensor) -> bool:
    """Whether labels are those of the first or the last rows only."""
    size = len(labels)
    return 0 < size < len(of) and (torch.equal(labels, of[:size]) or torch.equal(labels, of[-size:]))
