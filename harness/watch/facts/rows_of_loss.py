"""Rows of a loss: which rows of the batch at hand the loss functions were given, logits and labels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import torch

from harness.watch.bus import Recogniser
from harness.watch.events import Backward, BackwardBegins, Forward, LossCall
from harness.watch.facts.labels import RecentLabels
from harness.watch.facts.losses import DifferentiatedLoss

if TYPE_CHECKING:
    from harness.watch.monitor import Monitor

MOST_COMPARED = 10**7
"""Numbers that are compared to find which rows a loss function was given."""

MOST_FACTORS = 8
"""Operations between a loss function's value and what is differentiated: by reasoning, a division by the number of
micro-batches and a GradScaler's factor are two."""


@dataclass(frozen=True, eq=False)
class GivenRows:
    """What the loss functions of a backward pass were given, where a model's logits meet the labels of classes."""

    own: torch.Tensor
    """Labels of the batch that the model was given, (rows,)."""
    others: list[torch.Tensor]
    """Those of other batches of late."""
    targets: list[torch.Tensor]
    """Labels that the calls were given, in their order."""
    places: list[torch.Tensor]
    """Of each call, which rows of logits are which of the model's, (rows, rows of the model)."""
    call: LossCall
    """The last of them."""
    alone: bool
    """Whether the last one's value is all that is differentiated, but for a factor."""

    @cached_property
    def aligned(self) -> bool:
        """Whether each label is that of its row of logits."""
        pairs = zip(self.targets, self.places, strict=True)
        return all(_belong(target, self.own, places) for target, places in pairs)

    @cached_property
    def partial(self) -> bool:
        """Whether they are the first rows only, or the last ones, each with its own label."""
        return self.aligned and self.alone and self.labels_of_some and all(map(_is_stretch, self.places))

    @property
    def labels_of_some(self) -> bool:
        """Whether the labels are those of the first rows only, or of the last ones, whatever logits they meet."""
        return all(_is_part(target, self.own) for target in self.targets)


class RowsOfLoss(Recogniser):
    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.loss = monitor.fact(DifferentiatedLoss)
        self.labels = monitor.fact(RecentLabels)
        self.given: GivenRows | None = None
        """Of the backward pass at hand."""
        self.has_labels = False
        """Whether the batch of the backward pass at hand has labels that its loss function could be given."""
        self.judged = False
        """Whether its loss is one of classes, finite, and looked at."""

    def on_backward_begins(self, event: BackwardBegins) -> None:
        self.given, self.has_labels = None, False
        calls = self._calls(event)
        self.judged = bool(calls)
        if not calls:
            return
        own, others = self.labels.of(event)
        self.has_labels = own is not None
        places = [_places(call.input.detach(), event.forwards) for call in calls]
        known = [each for each in places if each is not None]
        if own is None or len(known) < len(places):
            return  # the logits were changed on their way, and their rows are not known
        targets = [call.target.detach().cpu() for call in calls]
        self.given = GivenRows(own, others, targets, known, calls[-1], _is_all(event.root, calls[-1].value))

    def on_backward(self, event: Backward) -> None:
        self.given = None  # it holds the loss, and so the graph and the model

    def _calls(self, event: BackwardBegins) -> list[LossCall]:
        if self.loss.value is None or not math.isfinite(self.loss.value):
            return []
        calls = [call for call in event.losses if call.function in ("cross_entropy", "nll_loss")]
        calls = [call for call in calls if call.value is event.root or torch.equal(call.value, event.root)] or calls
        calls = [call for call in calls if call.target.dim() == 1 and call.input.dim() == 2]
        return [] if any(call.target.is_floating_point() for call in calls) else calls


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


def _belong(target: torch.Tensor, own: torch.Tensor, places: torch.Tensor) -> bool:
    if places.shape != (len(target), len(own)):
        return False
    return bool((places & (target.unsqueeze(1) == own)).any(1).all())


def _is_stretch(places: torch.Tensor) -> bool:
    """Whether the rows are the first or the last ones, in their order."""
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
    size = len(labels)
    return 0 < size < len(of) and (torch.equal(labels, of[:size]) or torch.equal(labels, of[-size:]))
