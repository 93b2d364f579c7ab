"""Rows of a loss: which rows of the batch at hand the loss functions were given, logits and labels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch

from harness.watch.events import BackwardBegins, Fact, Forward, LossCall
from harness.watch.facts.labels import RecentLabels, equal
from harness.watch.facts.losses import DifferentiatedLoss
from harness.watch.host import on_host, together
from harness.watch.recogniser import Recogniser

MOST_COMPARED = 10**7
"""Numbers that are compared to find which rows a loss function was given."""

MOST_FACTORS = 8
"""Operations between a loss function's value and what is differentiated: by reasoning, a division by the number of
micro-batches and a GradScaler's factor are two."""


class LabelsOfLoss(Fact):
    """A loss of classes is differentiated, and its batch has labels. ``where`` its function was called last."""

    needs = "labels of classes in a batch of a DataLoader"
    in_windows = "first"
    rows: int
    """Rows of the batch."""
    given: int = 0
    """Labels that a loss function was given, at most; 0 where it is not known which rows of logits they met."""
    others: str | None = None
    """What labels the logits met, if not their own, as far as that is known."""
    others_in_a_row: int = 0
    """Updates, one after the other, in which they met others."""
    partial_in_a_row: int = 0
    """Updates in which the loss alone was of the first rows, or of the last ones, with their own labels."""


@dataclass(frozen=True, eq=False)
class GivenRows:
    """What the loss functions of a backward pass were given, where a model's logits meet the labels of classes."""

    own: torch.Tensor
    """Labels of the batch that the model was given, (rows,)."""
    others: list[torch.Tensor]
    """Labels of other batches of late."""
    targets: list[torch.Tensor]
    """Labels that the calls were given, in their order."""
    places: list[torch.Tensor]
    """Rows of logits of each call that are rows of the model's, (rows, rows of the model)."""
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
    def labels_of_others(self) -> str | None:
        """What labels the logits meet, if not their own."""
        if self.aligned or any(equal(target, self.own) for target in self.targets):
            return None
        if all(equal(target.sort()[0], self.own.sort()[0]) for target in self.targets):
            return "the batch's labels in another order"
        if self.labels_of_some:
            return "the labels of other rows"
        previous = any(equal(target, older) for target in self.targets for older in self.others)
        return "the labels of another batch" if previous else None

    @property
    def labels_of_some(self) -> bool:
        """Whether the labels are those of the first rows only, or of the last ones, whatever logits they meet."""
        return all(_is_part(target, self.own) for target in self.targets)


class RowsOfLoss(Recogniser):
    makes = (LabelsOfLoss,)

    def begin(self) -> None:
        self._loss = self.fact(DifferentiatedLoss)
        self._labels = self.fact(RecentLabels)
        self._others = self._partial = 0
        """Updates in a row."""

    def on_backward_begins(self, event: BackwardBegins) -> None:
        calls = self._calls(event)
        if not calls:
            return
        own, older = self._labels.of(event)
        places = [_places(on_host(call.input), event.forwards) for call in calls]
        known = [each for each in places if each is not None]
        if own is None or len(known) < len(places):  # the logits were changed on their way, and their rows not known
            self._others = 0
            if own is not None:
                self.tell(LabelsOfLoss(rows=len(own), where=calls[-1].where))
            return
        targets = [on_host(call.target).cpu() for call in calls]
        given = GivenRows(own, older, targets, known, _is_all(event.root, calls[-1].value))
        others = given.labels_of_others
        self._others = 0 if others is None else self._others + 1
        self._partial = self._partial + 1 if given.partial else 0
        self.tell(
            LabelsOfLoss(
                rows=len(own),
                given=max(map(len, targets)),
                others=others,
                others_in_a_row=self._others,
                partial_in_a_row=self._partial,
                where=calls[-1].where,
            )
        )

    def _calls(self, event: BackwardBegins) -> list[LossCall]:
        if self._loss.value is None or not math.isfinite(self._loss.value):
            return []
        calls = [call for call in event.losses if call.of_classes]
        calls = [call for call in calls if call.value is event.root or _is_root(call.value, event.root)] or calls
        calls = [call for call in calls if call.target.dim() == 1 and call.input.dim() == 2]
        return [] if any(call.target.is_floating_point() for call in calls) else calls


def _is_root(value: torch.Tensor, root: torch.Tensor) -> bool:
    value, root = together(value, root)
    return torch.equal(value, root)


def _places(given: torch.Tensor, forwards: Sequence[Forward]) -> torch.Tensor | None:
    """Which rows of a model's logits a loss function was given, (rows, rows of the model); None where it is none."""
    for forward in reversed(forwards):
        logits = None if forward.logits is None else on_host(forward.logits)
        if logits is None or logits.dim() != 2 or logits.shape[1] != given.shape[1]:
            continue
        if len(given) * logits.numel() > MOST_COMPARED:
            return None
        alike = (given.to(logits).unsqueeze(1) == logits.unsqueeze(0)).all(2)
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
