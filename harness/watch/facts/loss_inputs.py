"""Loss inputs: what losses are given as logits and as targets, and which of them they leave out."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any
from weakref import ref

import torch
from torch import nn

from harness.watch.bounded import Latest
from harness.watch.events import IGNORED, BackwardBegins, Fact, Forward, LossCall, Pairing
from harness.watch.host import on_host
from harness.watch.recogniser import Recogniser
from harness.watch.run.batches import tensors_in

MAX_LOGARITHM = 1e-2
"""Largest logarithm of a probability, with some room for rounding."""

RESHAPES = ("View", "Unsafe", "Reshape", "Squeeze", "Unsqueeze", "Select", "Slice", "Index", "TBackward", "Transpose")
"""Beginnings of the names of what gives a tensor another shape without computing anything."""

MOST_OPERATIONS = 4
"""Operations to go back from what is subtracted to what a model gave."""

MIN_SHARE = 0.5
"""Smallest share of the targets within a row that must be ignored. The tag of all other words is more often, and parts
of words and marks that are left out are fewer. Half or double of it changes verdicts (scripts/records/margins.json)."""

REGRESSIONS = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")


class LossInput(Fact):
    """A loss function was called that takes logits, or was given something else than what it takes."""

    needs = "loss function that takes logits"
    in_windows = "first"
    function: str
    takes_logits: bool = True
    """Whether it is certain that it takes logits or their logarithms."""
    instead: str | None = None
    """What it was given in their place."""
    numbers: int = 0
    """How many numbers were such, in calls of this function in a row."""
    by_hand: bool = False
    """Whether the script has written the function itself."""


class LossInputs(Recogniser):
    makes = (LossInput,)

    def begin(self) -> None:
        self._numbers: Counter[str] = Counter()
        """Loss function to how many numbers it was given in a row that were no raw logits."""

    def on_loss(self, event: LossCall) -> None:
        if event.at.sampled and event.input.is_floating_point():
            self._look_at(event)

    def on_backward_begins(self, event: BackwardBegins) -> None:
        for call in event.losses:
            if call.by_hand:
                self._look_at(call)

    def _look_at(self, event: LossCall) -> None:
        function, takes, instead = event.function, _takes_logits(event), _instead_of_logits(event)
        self._numbers[function] = self._numbers[function] + event.input.numel() if instead else 0
        if takes or instead:
            numbers = self._numbers[function]
            self.tell(
                LossInput(
                    function=function,
                    takes_logits=takes,
                    instead=instead,
                    numbers=numbers,
                    by_hand=event.by_hand,
                    where=event.where,
                )
            )


def _takes_logits(call: LossCall) -> bool:
    of_rows = call.of_classes and call.input.dim() == 2
    return of_rows or call.function == "binary_cross_entropy_with_logits"


def _instead_of_logits(call: LossCall) -> str | None:
    """What the loss function is given; None where that is what it expects."""
    if call.function == "binary_cross_entropy_with_logits":
        if _is_made_by(call.input, "Sigmoid"):
            return "probabilities; it takes the sigmoid itself"
        return "the output of a softmax; it takes the sigmoid itself" if _is_made_by(call.input, "Softmax") else None
    values = on_host(call.input).float()
    if values.dim() < 2 or not values.numel():
        return None
    if call.function == "kl_div":
        return _instead_of_logarithms(call, values)
    no_logarithms = float(values.max()) > MAX_LOGARITHM  # else they may be weighted, as in a focal loss
    if call.function == "nll_loss" and no_logarithms and not _all_near(values.logsumexp(1), 0.0, 1e-2):
        return "no log-probabilities (their exponentials do not sum to 1), which it needs"
    if call.function == "cross_entropy" and values.shape[1] > 1 and bool((values >= 0).all()):
        if _all_near(values.sum(1), 1.0, 1e-2):
            return "probabilities (its rows sum to 1); it takes the softmax itself"
        if len(values) > 1 and _all_near(values.sum(0), 1.0, 1e-3):
            return "a softmax over the batch (its columns sum to 1)"
    return None


def _instead_of_logarithms(call: LossCall, values: torch.Tensor) -> str | None:
    """What kl_div is given in the place of the logarithms of a distribution; None where that cannot be told."""
    if values.shape != call.target.shape:
        return None
    target = on_host(call.target).to(values)
    target = target.exp() if call.options.get("log_target") else target
    for dim in (-1, 1):
        if values.shape[dim] == 1 or bool((target < 0).any()) or not _all_near(target.sum(dim), 1.0, 1e-2):
            continue  # the targets are no distributions over this dimension
        if bool((values >= 0).all()) and _all_near(values.sum(dim), 1.0, 1e-2):
            return "probabilities as its first argument, which it takes for log-probabilities"
        if float(values.max()) > MAX_LOGARITHM and not _all_near(values.logsumexp(dim), 0.0, 1e-2):
            return "no log-probabilities (their exponentials do not sum to 1), which it needs"
        return None
    return None


def _all_near(values: torch.Tensor, expected: float, tolerance: float) -> bool:
    return torch.allclose(values, torch.full_like(values, expected), atol=tolerance)


def _is_made_by(tensor: torch.Tensor, function: str) -> bool:
    """Whether a function made it, with no more than a reshape in between."""
    node = tensor.grad_fn
    while node is not None and node.name().startswith(("View", "Reshape", "Squeeze", "Unsqueeze", "ToCopy", "Select")):
        node = node.next_functions[0][0]
    return node is not None and node.name().startswith(function)


class DifferenceInPairs(Fact):
    """A loss is differentiated for which each output of a model was subtracted from every target, or the other way
    round, and no output from others. ``where`` it was subtracted."""

    in_windows = "all"
    outputs: torch.Size
    targets: torch.Size


class DifferenceOfRows(Fact):
    """A loss by hand is differentiated for which each output of a model was subtracted from its own target."""

    in_windows = "all"


class LossesWeighted(Fact):
    """The losses of rows, one number each, were multiplied by weights of rows that have another shape."""

    in_windows = "all"
    losses: torch.Size
    weights: torch.Size


class Differences(Recogniser):
    makes = (DifferenceInPairs, DifferenceOfRows, LossesWeighted)
    _by_hand: DifferenceInPairs | None = None
    """Difference in pairs within the loss that is being computed."""
    _in_pairs = False
    """Whether outputs are compared with each other in it."""

    def begin(self) -> None:
        self._by_row = Latest[ref[torch.Tensor]]()
        """Losses since the backward pass before that have a number for each row."""

    def on_loss(self, event: LossCall) -> None:
        if event.reduction == "none" and event.value.dim() in (1, 2):
            self._by_row.append(ref(event.value))

    def _on_product(self, event: Pairing) -> None:
        if event.column is None or event.one.requires_grad == event.other.requires_grad:
            return
        losses, weights = (event.one, event.other) if event.one.requires_grad else (event.other, event.one)
        if any(losses is each() for each in self._by_row):
            self.tell(LossesWeighted(losses=losses.shape, weights=weights.shape, where=event.where))

    def on_pairing(self, event: Pairing) -> None:
        if event.sign == "*":
            self._on_product(event)
        if event.sign != "-" or not event.at.sampled:
            return
        if event.one.requires_grad == event.other.requires_grad:
            self._in_pairs = self._in_pairs or event.one.requires_grad
        elif event.column is not None:
            ours, other = (event.one, event.other) if event.one.requires_grad else (event.other, event.one)
            if any(_is_output(ours, forward) for forward in event.forwards):
                self._by_hand = DifferenceInPairs(outputs=ours.shape, targets=other.shape, where=event.where)

    def on_backward_begins(self, event: BackwardBegins) -> None:
        self._by_row.clear()
        by_hand, in_pairs = self._by_hand, self._in_pairs
        self._by_hand, self._in_pairs = None, False
        if by_hand is not None and not in_pairs:
            self.tell(by_hand)
        elif by_hand is None and any(each.by_hand and each.function in REGRESSIONS for each in event.losses):
            self.tell(DifferenceOfRows(where=event.where))


def _is_output(tensor: torch.Tensor, forward: Forward) -> bool:
    """Whether it is what a model gave for as many rows, and was not brought into its shape by a call for that."""
    logits = forward.logits
    if logits is None or len(logits) != len(tensor) or logits.grad_fn is None:
        return False
    if not any(each.dim() > 1 and len(each) == len(tensor) for each in forward.tensors.values()):
        return False
    node = tensor.grad_fn
    for _ in range(MOST_OPERATIONS):
        if node is None or node is logits.grad_fn:
            return node is not None
        before = [each for each, _ in node.next_functions if each is not None]
        node = before[0] if len(before) == 1 and not node.name().startswith(RESHAPES) else None
    return False


class TargetsIgnored(Fact):
    """A loss was given rows of targets of which some are ignored, or which might be."""

    needs = "loss over rows of labels of which some are ignored"
    in_windows = "first"
    index: int
    """The target that is ignored."""
    classes: int
    targets: int
    ignored: int
    """Targets that are ignored."""
    between: int = 0
    """Ignored targets with others before and after them in their row."""
    times: int = 0
    """Calls so far in which a class of the model was ignored between others often; 0 where the index is no class."""


class RegressionTargets(Fact):
    """The loss of a regression was differentiated alone."""

    needs = "regression over a DataLoader"
    in_windows = "first"
    function: str
    value: float | None = None
    """What all targets have been so far."""
    batches: int = 0
    """Batches with these targets, which hold them as integers; 0 where this one brought none, or they differ."""
    rows: int = 0


class IgnoredTargets(Recogniser):
    makes = (TargetsIgnored,)
    _times = 0

    def on_loss(self, event: LossCall) -> None:
        index = event.options.get("ignore_index", IGNORED)
        if not event.of_classes or not event.at.sampled:
            return
        classes = event.input.shape[1] if event.input.dim() > 1 else len(event.input)
        called = self.monitor.forwards[-1:]
        rows = _rows(event.target.detach(), called)
        if rows is None:
            return
        taught, between = rows != index, 0
        ignored = int((~taught).sum())
        is_class = 0 <= index < classes and not any(_has_vocabulary(each.model, classes) for each in called)
        if is_class:
            seen_before, seen_after = taught.cumsum(1) > 0, taught.flip(1).cumsum(1).flip(1) > 0
            between = int((~taught & seen_before & seen_after).sum())
            self._times += between > 0 and between >= MIN_SHARE * (between + int(taught.sum()))
        if ignored or is_class:
            self.tell(
                TargetsIgnored(
                    index=index,
                    classes=classes,
                    targets=rows.numel(),
                    ignored=ignored,
                    between=between,
                    times=self._times if is_class else 0,
                    where=event.where,
                )
            )


def _rows(target: torch.Tensor, forwards: list[Forward]) -> torch.Tensor | None:
    """(rows, tokens) of targets that may have been given flat; None where they are no such rows."""
    if target.dim() == 2:
        return target
    logits = forwards[0].logits if forwards else None
    if target.dim() == 1 and logits is not None and logits.dim() == 3 and logits.shape[:2].numel() == len(target):
        return target.reshape(logits.shape[:2])
    return None


def _has_vocabulary(model: nn.Module, classes: int) -> bool:
    return any(isinstance(each, nn.Embedding) and each.num_embeddings == classes for each in model.modules())


class TargetsOfRegressions(Recogniser):
    makes = (RegressionTargets,)
    _value: float | None = None
    """Value of all targets so far."""
    _batches = _rows = 0
    _varied = False
    _batch: int | None = None

    def on_backward_begins(self, event: BackwardBegins) -> None:
        if self._varied or event.inside_step or event.batch is None or not event.at.sampled:
            return
        calls = [call for call in event.losses if call.function in REGRESSIONS]
        if not len(calls) == len(event.losses) == 1:
            return
        (call,) = calls
        told = RegressionTargets(function=call.function, where=call.where)
        if event.batch.number != self._batch and _came_as_integers(call.target, event.batch.data):
            self._batch = event.batch.number
            told = self._with(call, told)
        self.tell(told)

    def _with(self, call: LossCall, told: RegressionTargets) -> RegressionTargets:
        target = call.target.detach()
        lowest, highest = float(target.min()), float(target.max())
        if lowest != highest or self._value not in (None, lowest):
            self._varied = True
            return told
        self._value = lowest
        self._batches += 1
        self._rows += target.numel()
        return replace(told, value=lowest, batches=self._batches, rows=self._rows)


def _came_as_integers(target: torch.Tensor, data: Any) -> bool:
    """Whether a batch holds these numbers as integers."""
    found = [each for _, each in tensors_in(data) if each.numel() == target.numel() and len(each) == len(target)]
    integers = [each for each in found if not each.is_floating_point()]
    return len(found) == len(integers) == 1 and torch.equal(
        integers[0].reshape(-1).to(target), target.detach().reshape(-1)
    )
