from __future__ import annotations

import torch

from harness.watch.check import Check
from harness.watch.events import BackwardBegins, Forward, LossCall, Pairing
from harness.watch.monitor import Monitor

RESHAPES = ("View", "Unsafe", "Reshape", "Squeeze", "Unsqueeze", "Select", "Slice", "Index", "TBackward", "Transpose")
"""Beginnings of the names of what gives a tensor another shape without computing anything."""

MOST_OPERATIONS = 4
"""Operations to go back from what is subtracted to what a model gave."""


class Broadcast(Check):
    """Predictions and targets have different shapes, so that the loss compares each prediction with every target.

    ## Why is this a bug?
    Predictions of shape (16, 1) and targets of shape (16,) are broadcast to (16, 16): all rows share the mean of all
    targets, and the model learns to predict that mean for everything. torch warns once and goes on; if the script takes
    the difference by hand, nothing warns.

    ## What to do
    Give both the same shape (squeeze(-1) or unsqueeze(-1)).

    ## When it is right
    One target for all rows is not reported. Neither are shapes that were made for pairs, such as (16, 1) and (1, 16),
    or a loss that also compares outputs with each other. `cross_entropy` and `nll_loss`, whose targets have one
    dimension fewer, are not reported either.

    ## References
    - https://github.com/pytorch/pytorch/issues/4938
    """

    needs = "loss whose target has the prediction's shape"
    in_windows = "all"
    formerly = ("loss::shapes-agree",)

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.by_hand: tuple[Pairing, torch.Size] | None = None
        """A difference of outputs and targets, with the outputs' shape, in the loss that is being computed."""
        self.in_pairs = False
        """Whether outputs are compared with each other in it."""

    def on_loss(self, event: LossCall) -> None:
        if not self.monitor.is_sampled() or event.function in ("cross_entropy", "nll_loss"):
            return
        self.looked = True
        given, target = event.input.shape, event.target.shape
        if len(given) == len(target) or event.options.get("reduction") == "none":
            return  # made for pairs
        wider = torch.broadcast_shapes(given, target)  # type: ignore[no-untyped-call]
        if wider.numel() > max(given.numel(), target.numel()):
            self._found(given, target, event.function, event.where)

    def on_pairing(self, event: Pairing) -> None:
        if event.sign != "-" or not self.monitor.is_sampled():
            return
        if event.one.requires_grad == event.other.requires_grad:
            self.in_pairs = self.in_pairs or event.one.requires_grad
        elif event.column is not None:
            ours = event.one if event.one.requires_grad else event.other
            if any(_is_output(ours, forward) for forward in event.forwards):
                self.by_hand = event, ours.shape

    def on_backward_begins(self, event: BackwardBegins) -> None:
        by_hand, in_pairs = self.by_hand, self.in_pairs
        self.by_hand, self.in_pairs = None, False
        if by_hand is not None and not in_pairs:
            pairing, shape = by_hand
            other = pairing.other if pairing.one.shape == shape else pairing.one
            self._found(shape, other.shape, "the subtraction", pairing.where)

    def _found(self, given: torch.Size, target: torch.Size, operation: str, where: str | None) -> None:
        self.found(
            expected=f"a target of the prediction's shape, {tuple(given)}",
            observed=f"one of shape {tuple(target)}, which {operation} broadcasts: each row is compared with every "
            "target",
            where=where,
            update=self.monitor.update,
        )


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
