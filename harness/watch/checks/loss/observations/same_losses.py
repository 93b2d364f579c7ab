"""Same losses: whether two of those that are added up and differentiated are one."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import torch

from harness.watch.checks.loss.observations.loss_terms import LINEAR, MOST_NODES
from harness.watch.events import BackwardBegins, Fact, LossCall
from harness.watch.recogniser import Recogniser


class LossesSummed(Fact):
    """Several losses were differentiated as one sum. ``where`` the second of two that are the same was computed."""

    needs = "sum of two losses"
    same: str | None = None
    """The function of two that were given the same, place for place."""
    times: int = 0
    """Backward passes in a row so far in which there were such."""


class SameLosses(Recogniser):
    makes = (LossesSummed,)
    _times = 0

    def on_backward_begins(self, event: BackwardBegins) -> None:
        calls = [call for call in event.losses if call.value.grad_fn is not None]
        if len(calls) < 2 or event.inside_step or not event.at.sampled:
            return
        summed = _summed(event.root.grad_fn)
        calls = [call for call in calls if any(call.value.grad_fn is node for node in summed)]
        if len(calls) < 2:
            return
        twice = next((other for one, other in combinations(calls, 2) if _are_the_same(one, other)), None)
        self._times = 0 if twice is None else self._times + 1
        where = event.where if twice is None else twice.where
        self.tell(LossesSummed(same=None if twice is None else twice.function, times=self._times, where=where))


def _summed(root: Any) -> list[Any]:
    """The nodes from which what is differentiated is summed up."""
    waiting, found = [root], list[Any]()
    while waiting and len(found) < MOST_NODES:
        node = waiting.pop(0)
        if node is not None:
            found.append(node)
            if node.name().startswith(LINEAR):
                waiting += [each for each, _ in node.next_functions]
    return found


def _are_the_same(one: LossCall, other: LossCall) -> bool:
    """Whether two calls were given the same memory in the same order, equal targets and equal options."""
    if one.where == other.where or one.value.grad_fn is other.value.grad_fn:
        return False  # one call, which is seen twice where a model is compiled
    if one.function != other.function or one.options.keys() != other.options.keys():
        return False
    if not all(_is_same(value, other.options[name]) for name, value in one.options.items()):
        return False
    return _is_same(one.input, other.input) and (_is_same(one.target, other.target) or _are_equal(one, other))


def _is_same(one: Any, other: Any) -> bool:
    if not (torch.is_tensor(one) and torch.is_tensor(other)):
        return one is other or (not torch.is_tensor(one) and not torch.is_tensor(other) and bool(one == other))
    return (one.data_ptr(), one.shape, one.stride()) == (other.data_ptr(), other.shape, other.stride())


def _are_equal(one: LossCall, other: LossCall) -> bool:
    alike = one.target.shape == other.target.shape and one.target.device == other.target.device
    return alike and torch.equal(one.target, other.target)
