"""Differences of what a model gave and its targets, taken by hand, in a loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from harness.watch.bus import Recogniser
from harness.watch.events import BackwardBegins, Fact, Forward, Pairing

if TYPE_CHECKING:
    from harness.watch.monitor import Monitor

RESHAPES = ("View", "Unsafe", "Reshape", "Squeeze", "Unsqueeze", "Select", "Slice", "Index", "TBackward", "Transpose")
"""Beginnings of the names of what gives a tensor another shape without computing anything."""

MOST_OPERATIONS = 4
"""Operations to go back from what is subtracted to what a model gave."""


@dataclass(frozen=True, eq=False, kw_only=True)
class DifferenceInPairs(Fact):
    """A loss is differentiated for which each output of a model was subtracted from every target, or the other way
    round, and no output from others. ``where`` it was subtracted."""

    in_windows = "all"
    outputs: torch.Size
    targets: torch.Size


class Differences(Recogniser):
    makes = (DifferenceInPairs,)

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self._by_hand: DifferenceInPairs | None = None
        """In the loss that is being computed."""
        self._in_pairs = False
        """Whether outputs are compared with each other in it."""

    def on_pairing(self, event: Pairing) -> None:
        if event.sign != "-" or not event.at.sampled:
            return
        if event.one.requires_grad == event.other.requires_grad:
            self._in_pairs = self._in_pairs or event.one.requires_grad
        elif event.column is not None:
            ours, other = (event.one, event.other) if event.one.requires_grad else (event.other, event.one)
            if any(_is_output(ours, forward) for forward in event.forwards):
                self._by_hand = DifferenceInPairs(outputs=ours.shape, targets=other.shape, where=event.where)

    def on_backward_begins(self, event: BackwardBegins) -> None:
        by_hand, in_pairs = self._by_hand, self._in_pairs
        self._by_hand, self._in_pairs = None, False
        if by_hand is not None and not in_pairs:
            self.tell(by_hand)


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
