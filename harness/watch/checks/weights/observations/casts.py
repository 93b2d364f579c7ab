"""Casts: whether the copies of weights that autocast keeps are of those that the latest update left."""

from __future__ import annotations

import torch

from harness.watch.events import AutocastLeft, Fact, Forward, Step
from harness.watch.recogniser import Recogniser


class CastsUsed(Fact):
    """A model that is trained in float32 was called under autocast, after an update. ``where`` the call."""

    needs = "forward pass under autocast after an update"
    stale: int = 0
    """Updates since the copies of its weights were made that autocast uses."""


class Casts(Recogniser):
    makes = (CastsUsed,)

    def begin(self) -> None:
        self._stale = 0
        """Updates within the autocast block at hand, after a forward pass in it."""
        self._called = False
        """Whether a model was called in it."""

    def on_autocast_left(self, event: AutocastLeft) -> None:
        self._stale, self._called = 0, False

    def on_step(self, event: Step) -> None:
        self._stale += self._called

    def on_forward(self, event: Forward) -> None:
        if not event.gradients or not event.at.updates_made:
            self._called |= event.gradients and _casts(event)
        elif _casts(event):
            self.tell(CastsUsed(stale=self._stale, where=event.where))
            self._called = True


def _casts(event: Forward) -> bool:
    """Whether autocast keeps copies of a model's weights meanwhile."""
    first = next(iter(event.model.parameters()), None)
    if first is None or not torch.is_autocast_enabled(first.device.type) or not torch.is_autocast_cache_enabled():
        return False
    return any(p.requires_grad and p.dim() > 1 and p.dtype is torch.float32 for p in event.model.parameters())
