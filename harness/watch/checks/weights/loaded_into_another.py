from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from weakref import WeakSet, ref

from torch import nn

from harness.torch_objects import share_parameters
from harness.watch.check import Check
from harness.watch.events import End, Forward, Load, Save, StateAsked
from harness.watch.facts.trained_models import TrainedModels
from harness.watch.monitor import Monitor

MOST_UNUSED = 64
"""Modules that wait to be used, the latest of those into which a state was loaded. One or two are usual. Neither half
nor double of it changes a verdict of the corpus."""


@dataclass(eq=False)
class Unused:
    """A module that a state was loaded into, and that has never been used."""

    module: ref[nn.Module]
    name: str
    where: str | None
    update: int
    passed_over: bool = False
    """Whether another model was used since."""

    def is_part_of(self, model: nn.Module) -> bool:
        """Whether it is a module of the model, or has parameters of it."""
        module = self.module()
        if module is None:
            return False
        return any(module is each for each in model.modules()) or share_parameters(module, model)


class LoadedIntoAnother(Check):
    """A state is loaded into another model of the same class than the one that goes on, and nobody uses that one.

    ## Why is this a bug?
    A state that is loaded into a copy changes nothing in the model that is trained or evaluated: a resumed training
    starts over, and what is called the best model is the last one.

    ## What to do
    Load it into the model that is trained or evaluated, not into a copy of it.

    ## When it is right
    A second model that is used in any way, before or after, is not reported (a target network that is updated once more
    when the training is over), nor is the state that a script loads last of all.
    """

    needs = "state loaded into a model"
    formerly = ("weights::state-not-loaded", "identity::state-was-loaded")
    explains = ("saved::resumed-incompletely", "saved::not-what-was-trained", "weights::left-random")

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.trained = monitor.fact(TrainedModels)
        self.unused: deque[Unused] = deque(maxlen=MOST_UNUSED)
        self.used: WeakSet[nn.Module] = WeakSet()

    def on_load(self, event: Load) -> None:
        if not isinstance(event.into, nn.Module) or not event.state:
            return
        self.looked = True
        name = type(event.into).__name__
        loaded = Unused(ref(event.into), name, event.where, max(1, self.monitor.updates_made))
        if event.into not in self.used and not any(map(loaded.is_part_of, self.used)):
            self.unused.append(loaded)

    def on_forward(self, event: Forward) -> None:
        self._use(event.model)

    def on_state_asked(self, event: StateAsked) -> None:
        self._use(event.module)

    def on_save(self, event: Save) -> None:
        if isinstance(event.what, nn.Module):
            self._use(event.what)

    def _use(self, model: nn.Module) -> None:
        if model not in self.used:
            self.used.add(model)
            self.unused = deque((each for each in self.unused if not each.is_part_of(model)), MOST_UNUSED)
        for each in self.unused:
            each.passed_over = True

    def on_end(self, event: End) -> None:
        names = {type(model).__name__ for model in self.trained.all}
        for each in self.unused if self.monitor.complete else ():
            if each.passed_over and each.name in names and not any(map(each.is_part_of, self.trained.all)):
                self.found(
                    expected="a state that is loaded into the model that goes on",
                    observed=f"it was loaded into another {each.name}, which nobody used afterwards",
                    where=each.where,
                    update=each.update,
                )
