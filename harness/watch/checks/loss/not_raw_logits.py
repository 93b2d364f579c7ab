from __future__ import annotations

from collections import Counter

import torch

from harness.watch.check import Check
from harness.watch.events import LossCall
from harness.watch.monitor import Monitor

MIN_VALUES = 8
"""Numbers that a loss function must have been given in a row that are no raw logits: by reasoning, the logits of one or
two rows may add up to 1 by chance."""

MAX_LOGARITHM = 1e-2
"""Largest logarithm of a probability, with some room for rounding."""

HINTS = {
    "nll_loss": "Give it log_softmax(logits), or use cross_entropy.",
    "kl_div": "Give it log_softmax(logits) as its first argument, and probabilities as its second.",
}
"""What to do, for functions that expect logarithms."""


class NotRawLogits(Check):
    """The loss is computed from something else than the raw logits or log-probabilities that its function expects.

    ## Why is this a bug?
    `cross_entropy` applies the softmax itself, and `binary_cross_entropy_with_logits` the sigmoid. Given probabilities,
    they squash them once more: the loss cannot fall below a bound (0.31 with two classes), gradients are small, and the
    model never becomes sure of anything. `nll_loss` and `kl_div` expect logarithms and raise no error if they get
    something else.

    ## What to do
    Take the softmax or sigmoid out.

    Give the loss function what the last linear layer returns. Apply the softmax only where probabilities are shown.

    ## When it is right
    Log-probabilities given to `cross_entropy` are not reported: its softmax leaves them as they are. Neither are
    probabilities given to `binary_cross_entropy`, which expects them, inputs of `kl_div` whose target is not a
    distribution, or log-probabilities that are weighted (a focal loss) before `nll_loss` takes them.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.CrossEntropyLoss.html
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.NLLLoss.html
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.KLDivLoss.html
    """

    needs = "loss function that takes logits"
    in_windows = "first"
    formerly = ("loss::of-raw-logits",)

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.numbers: Counter[str] = Counter()
        """By loss function, how many it was given in a row that were no raw logits."""

    def on_loss(self, event: LossCall) -> None:
        if not self.monitor.is_sampled() or not event.input.is_floating_point():
            return
        self.looked |= _takes_logits(event)
        given = _instead_of_logits(event)
        self.numbers[event.function] = self.numbers[event.function] + event.input.numel() if given else 0
        if given and self.numbers[event.function] >= MIN_VALUES:
            of_logarithms = event.function in ("nll_loss", "kl_div")
            self.found(
                expected="log-probabilities" if of_logarithms else "raw logits",
                observed=f"{event.function} is given {given}",
                where=event.where,
                update=self.monitor.update,
                hint=HINTS.get(event.function),
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
