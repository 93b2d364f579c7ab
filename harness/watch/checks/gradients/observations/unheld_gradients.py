"""Gradients of parameters that no optimizer holds, which nothing clears."""

from __future__ import annotations

from collections.abc import Sequence

from harness.watch.events import Clip, End, Fact
from harness.watch.facts.gradient_ledger import GradientsCleared
from harness.watch.facts.ledger import with_some_gradient
from harness.watch.facts.parameters import Parameters
from harness.watch.recogniser import Recogniser


class ClippedWithUnheld(Fact):
    """The gradients of an optimizer were clipped together with some that no optimizer uses and nothing clears."""

    in_windows = "first"
    of_run = True
    model: str
    parameters: Sequence[str]
    """Names of those that are in no optimizer."""


class UnheldGradients(Recogniser):
    makes = (ClippedWithUnheld,)

    def begin(self) -> None:
        self._parameters = self.fact(Parameters)
        self._piled_up: set[int] = set()
        """Ids of tensors whose gradients were still there when those of an optimizer had been cleared."""
        self._clipped: dict[str, str | None] = {}
        """Models with such tensors, and where they are clipped together with those of an optimizer."""

    def on_cleared(self, fact: GradientsCleared) -> None:
        for model in self._parameters.models:
            tensors = [model.tensors[name]() for name in model.unheld]
            new = [t for t in tensors if t is not None and id(t) not in self._piled_up]
            self._piled_up |= {id(t) for t in with_some_gradient(new)}

    def on_clip(self, event: Clip) -> None:
        given = self._piled_up.intersection(map(id, event.parameters)) if self._piled_up else set()
        for model in self._parameters.models if given else ():
            unheld = {id(model.tensors[name]()) for name in model.unheld if name in model.forgotten}
            if unheld & given:
                self._clipped[model.name] = event.where

    def on_end(self, event: End) -> None:
        seen = self._parameters
        for model in seen.left_out() if seen.stepped else ():
            if model.name in self._clipped and seen.may_be_meant(model):
                forgotten = [name for name in model.order if name in model.forgotten]
                where = self._clipped[model.name]
                self.tell(ClippedWithUnheld(model=model.name, parameters=forgotten, where=where))
