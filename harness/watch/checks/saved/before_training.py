from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary, WeakSet

from torch import nn

from harness.torch_objects import share_parameters
from harness.watch.check import Check
from harness.watch.events import Backward, End, FromPretrained, Load, Save, StateAsked
from harness.watch.facts.saved_states import states_in
from harness.watch.facts.trained_models import is_state_of, reached
from harness.watch.monitor import Monitor


class BeforeTraining(Check):
    """The model is saved before its first update, and not again.

    ## Why is this a bug?
    The file holds the weights that the training began with. The training's own results look right, and nobody sees it
    until the file is loaded.

    ## What to do
    Save it when the training is over.

    ## When it is right
    Saving the first weights as well as the trained ones is not reported, nor are data and statistics that are saved
    before the training, or a state that is saved to be loaded again.
    """

    needs = "model that is saved"
    formerly = ("saved::not-what-was-trained", "saved::is-what-was-trained")
    explains = ("saved::not-what-was-evaluated", "weights::left-random")

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.asked: WeakSet[nn.Module] = WeakSet()
        """Modules whose state was asked for before the first update."""
        self.early: WeakKeyDictionary[nn.Module, str | None] = WeakKeyDictionary()
        """Those that were saved before it, and where."""
        self.early_trained: list[str | None] = []
        """Where the first of them was saved that is trained in the first update; empty if none was."""
        self.late = False
        """Whether anything was saved after that."""
        self.knows_trained = False
        """Whether it is known which models are trained in the first update."""
        self.loaded_any = False
        """Whether a state was loaded into a module."""

    def on_from_pretrained(self, event: FromPretrained) -> None:
        self.early.clear()  # what was saved is what is loaded now
        self.early_trained.clear()

    def on_load(self, event: Load) -> None:
        self.loaded_any |= isinstance(event.into, nn.Module)

    def on_state_asked(self, event: StateAsked) -> None:
        if not self.monitor.stepped:
            self.asked.add(event.module)

    def on_backward(self, event: Backward) -> None:
        for model in reached(event) if not self.monitor.stepped else ():
            self.knows_trained = True
            if not self.early_trained:
                self.early_trained += [where for saved, where in self.early.items() if share_parameters(saved, model)]

    def on_save(self, event: Save) -> None:
        states = states_in(event.what)
        if not states:
            return
        if self.monitor.stepped:
            self.looked = self.late = True
            return
        modules: list[Any] = [state for state in states if isinstance(state, nn.Module)]
        modules += [module for module in self.asked if any(is_state_of(state, module) for state in states)]
        for module in modules:
            self.early.setdefault(module, event.where)

    def on_end(self, event: End) -> None:
        self.looked |= bool(self.early) and self.knows_trained
        if not self.monitor.complete or self.late or self.loaded_any or self.monitor.update <= 2:
            return
        if self.early_trained:
            self.found(
                expected="the model to be saved after its updates",
                observed="it was saved before the first one, and not again",
                where=self.early_trained[0],
                update=1,
            )
