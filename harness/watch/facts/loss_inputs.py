"""Loss inputs: whether loss functions are given the logits, or the logarithms, that they expect."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from harness.watch.bus import Recogniser
from harness.watch.events import Fact, LossCall

if TYPE_CHECKING:
    from harness.watch.monitor import Monitor

MAX_LOGARITHM = 1e-2
"""Largest logarithm of a probability, with some room for rounding."""


@dataclass(frozen=True, eq=False, kw_only=True)
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
    """That were such, in calls of this function in a row."""


class LossInputs(Recogniser):
    makes = (LossInput,)

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self._numbers: Counter[str] = Counter()
        """By loss function, how many it was given in a row that were no raw logits."""

    def on_loss(self, event: LossCall) -> None:
        if not event.at.sampled or not event.input.is_floating_point():
            return
        function, takes, instead = event.function, _takes_logits(event), _instead_of_logits(event)
        self._numbers[function] = self._numbers[function] + event.input.numel() if instead else 0
        if takes or instead:
            numbers = self._numbers[function]
            self.tell(
                LossInput(function=function, takes_logits=takes, instead=instead, numbers=numbers, where=event.where)
            )


def _takes_logits(call: LossCall) -> bool:
    of_rows = call.function in ("cross_entropy", "nll_loss") and call.input.dim() == 2
    return of_rows or call.function == "binary_cross_entropy_with_logits"


def _instead_of_logits(call: LossCall) -> str | None:
    """What the loss function is given; None where that is what it expects."""
    if call.function == "binary_cross_entropy_with_logits":
        return "probabilities; it takes the sigmoid itself" if _is_sigmoid(call.input) else None
    values = call.input.detach().float()
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
    target = call.target.detach().float()
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


def _is_sigmoid(tensor: torch.Tensor) -> bool:
    """Whether a sigmoid made it, with no more than a reshape in between."""
    node = tensor.grad_fn
    while node is not None and node.name().startswith(("View", "Reshape", "Squeeze", "Unsqueeze", "ToCopy", "Select")):
        node = node.next_functions[0][0]
    return node is not None and node.name().startswith("Sigmoid")
