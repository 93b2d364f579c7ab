"""Models that are called, each once."""

from __future__ import annotations

from weakref import WeakSet

from torch import nn

from harness.watch.bus import Recogniser
from harness.watch.events import Fact, Forward


class ModelCalled(Fact):
    """The first call of a model. ``where`` is the call."""

    needs = "model that is called"
    in_windows = "all"
    model: nn.Module


class ModelsCalled(Recogniser):
    makes = (ModelCalled,)

    def begin(self) -> None:
        self._seen: WeakSet[nn.Module] = WeakSet()

    def on_forward(self, event: Forward) -> None:
        if event.model not in self._seen:
            self._seen.add(event.model)
            self.tell(ModelCalled(model=event.model, where=event.where))
