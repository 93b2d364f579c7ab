from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

import torch
from torch import nn

from harness.torch_objects import share_parameters
from harness.watch.check import Check
from harness.watch.events import Backward, End, Forward, FromPretrained, Load, Save, StateAsked
from harness.watch.facts.saved_states import SavedStates, states_in
from harness.watch.facts.trained_models import CalledModels, ModelsFromCheckpoints, TrainedModels, all_equal, reached
from harness.watch.monitor import Monitor


@dataclass(frozen=True)
class Saved:
    name: str
    """Of the model's class."""
    where: str | None
    update: int


class NotWhatWasTrained(Check):
    """What is saved, or evaluated after the training, does not have the weights that were trained.

    ## Why is this a bug?
    Several objects stand for one model: what was loaded, what `prepare` gave back, a wrapper, a copy. If the one that
    is saved is not the one that the optimizer changed, or is saved before the training, the file holds the checkpoint
    that the training began with, and a new head at random. The training's own results look right. And an evaluation of
    such a model, or of a new one into which nothing was loaded, says nothing of the training.

    ## What to do
    Save the model that was trained (with Accelerate: accelerator.unwrap_model(model)).

    Save it when the training is over, and load for the evaluation what was saved then.

    ## When it is right
    Saving the first weights as well as the trained ones is not reported, nor are data and statistics that are saved
    before the training, nor is a comparison with the checkpoint before the training, or with an untrained model beside
    the trained one; nor are moving averages of the weights, copies that the script changes, and frozen models, such as
    a teacher, or a feature extractor of another class.

    ## References
    - https://huggingface.co/docs/accelerate/usage_guides/checkpoint
    """

    id = "saved::not-what-was-trained"
    needs = "model saved after its updates"
    formerly = ("saved::is-what-was-trained",)
    explains = ("saved::not-what-was-evaluated", "weights::left-random")

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.trained = monitor.fact(TrainedModels)
        self.loaded = monitor.fact(ModelsFromCheckpoints)
        self.called = monitor.fact(CalledModels)
        self.states = monitor.fact(SavedStates)
        self.saved_fresh: Saved | None = None
        """The first that was saved after an update, and is one from a checkpoint as it was loaded."""
        self.saved_trained = False
        """Whether a model was saved that was trained."""
        self.asked: WeakSet[nn.Module] = WeakSet()
        """Modules whose state was asked for before the first update."""
        self.early: WeakKeyDictionary[nn.Module, str | None] = WeakKeyDictionary()
        """Those that were saved before it, and where."""
        self.early_trained: list[str | None] = []
        """Where the first of them was saved that is trained in the first update; empty if none was."""
        self.late = False
        """Whether it was saved after that."""
        self.loaded_any = False
        """Whether a state was loaded into a module."""
        self.originals: list[list[torch.Tensor]] = []
        """A few tensors of each checkpoint that the script began with."""
        self.reloaded: WeakKeyDictionary[nn.Module, str | None] = WeakKeyDictionary()
        """Models with those very tensors that were loaded when updates had been made, and where."""
        self.untrained: list[str | None] = []
        """Where the first of those was loaded that were evaluated since the latest training; empty if none was."""

    def on_from_pretrained(self, event: FromPretrained) -> None:
        self.early.clear()  # what was saved is what is loaded now
        self.early_trained.clear()
        values = [value for _, value in self.loaded.spread[event.model]]
        if not self.monitor.stepped:
            self.originals.append(values)
        elif any(all_equal(values, first) for first in self.originals):
            self.reloaded[event.model] = event.where

    def on_load(self, event: Load) -> None:
        if isinstance(event.into, nn.Module):
            self.loaded_any = True
            for module in event.into.modules() if self.reloaded else ():  # an adapter's state goes into what is around
                self.reloaded.pop(module, None)

    def on_forward(self, event: Forward) -> None:
        if event.model in self.reloaded and not event.gradients and event.batch is not None and not self.untrained:
            self.untrained.append(self.reloaded[event.model])

    def on_state_asked(self, event: StateAsked) -> None:
        if not self.monitor.stepped:
            self.asked.add(event.module)

    def on_backward(self, event: Backward) -> None:
        for model in reached(event):
            self.reloaded.pop(model, None)
            if not self.monitor.stepped and not self.early_trained:
                self.early_trained += [where for saved, where in self.early.items() if share_parameters(saved, model)]
        if event.batch is not None:
            self.untrained.clear()  # a comparison before another training

    def on_save(self, event: Save) -> None:
        states = states_in(event.what)
        if not states:
            return
        if not self.monitor.stepped:
            self._save_early(states, event.where)
            return
        self.late = self.looked = True
        trained = list(self.trained.all)
        self.saved_trained = self.saved_trained or any(_is_of(state, model) for state in states for model in trained)
        fresh = [model for model in self.loaded.as_loaded() if any(_is_of(state, model) for state in states)]
        trained_frozen = any(share_parameters(model, other) for model in fresh for other in trained)
        names = [type(model).__name__ for model in fresh if type(model).__name__ in self.trained.names]
        if names and not trained_frozen:
            self.saved_fresh = self.saved_fresh or Saved(names[0], event.where, self.monitor.updates_made)

    def _save_early(self, states: list[Any], where: str | None) -> None:
        modules = [state for state in states if isinstance(state, nn.Module)]
        modules += [module for module in self.asked if any(_is_of(state, module) for state in states)]
        for module in modules:
            self.early.setdefault(module, where)

    def on_end(self, event: End) -> None:
        if self.monitor.complete:
            self._report_saved()
            self._report_called()
        for where in self.untrained:
            self.found(
                expected="the model that was trained, in the evaluation after the training",
                observed="it has the weights of the checkpoint that the training began with",
                where=where,
                update=self.monitor.updates_made,
                hint="Load what was saved after the training.",
            )

    def _report_saved(self) -> None:
        whole = [each for each in self.states.saves if each.values or each.is_base]
        copies = [each for each in whole if each.untouched]
        for number in {each.of for each in self.states.saves if each.is_base}:
            self._report_base(number)
        self._report_other()
        if copies and len(copies) == len(whole) and not (self.saved_trained or self.monitor.passes_shortened):
            name = self.states.trained[copies[-1].of].name
            self.found(
                expected="the weights that the updates made",
                observed=f"{name} as it was when the training began: a copy that nothing has changed since",
                where=copies[-1].where,
                update=copies[-1].updates_made,
                hint="Save the model that was trained, or a copy that is made after the training; an average of its "
                "weights has to be updated after each step.",
            )
        elif self.saved_fresh is not None and not self.saved_trained:
            self.found(
                expected="the model that the updates changed",
                observed=f"{self.saved_fresh.name} as it was loaded from its checkpoint, without any update",
                where=self.saved_fresh.where,
                update=self.saved_fresh.update,
            )
        if self.early_trained and not self.late and not self.loaded_any and self.monitor.update > 2:
            self.found(
                expected="the model to be saved after its updates",
                observed="it was saved before the first one, and not again",
                where=self.early_trained[0],
                update=1,
                hint="Save it when the training is over.",
            )

    def _report_base(self, number: int) -> None:
        saves = [each for each in self.states.saves if each.of == number]
        if all(each.is_base for each in saves):
            self.found(
                expected="what the adapters have learnt, in what is saved",
                observed=f"the base of {self.states.trained[number].name} as it was, without its adapters, which are "
                "saved nowhere",
                where=saves[-1].where,
                update=saves[-1].updates_made,
                hint="Save the adapter (`save_pretrained` of the PeftModel), or what `merge_and_unload()` returns; "
                "`unload()` returns the base without it.",
            )

    def _report_other(self) -> None:
        """A teacher whose training was over before that of its student began."""
        saved = {each.of for each in self.states.saves}
        latest = max(self.states.trained, key=lambda number: self.states.trained[number].updates_made, default=None)
        if latest is None or not saved or latest in saved:
            return
        last = self.states.trained[latest]
        kept = [self.states.trained[number] for number in saved]
        before = all(each.updates_made < last.began_at for each in kept)
        teach = all(each.references > 1 and each.shapes != last.shapes for each in kept)
        if before and teach and all(each.name == last.name for each in kept):
            saves = self.states.saves[-1]
            self.found(
                expected="the model that was trained last",
                observed=f"a {last.name} that was trained until update {kept[-1].updates_made + 1}; another, which was "
                f"trained until update {last.updates_made + 1}, is saved nowhere",
                where=saves.where,
                update=saves.updates_made,
                hint="Save the student, and not its teacher.",
            )

    def _report_called(self) -> None:
        """Of the models that were called when the training was over, those of the kind that was trained."""
        called = [each for each in self.called.since.values() if each.of_trained_kind]
        if called and all(each.untrained for each in called):
            self.found(
                expected="the model that was trained, in the evaluation after the training",
                observed=f"another of the same kind is called, which was never trained: {called[0].untrained}",
                where=called[0].where,
                update=self.monitor.updates_made,
                hint="Evaluate the model that was trained, or load its state into the one that is evaluated.",
            )


def _is_of(state: Any, model: nn.Module) -> bool:
    if isinstance(state, nn.Module):
        return state is model
    pointers = {p.data_ptr() for p in model.parameters()}
    return any(torch.is_tensor(value) and value.numel() and value.data_ptr() in pointers for value in state.values())
