"""Saved models: whether what a run saves is the model that it trained, and the one that it evaluated."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, Literal
from weakref import WeakKeyDictionary, WeakSet

import torch
from torch import nn

from harness import launch
from harness.torch_objects import share_parameters
from harness.watch.events import Backward, End, Fact, Forward, FromPretrained, Load, Save, StateAsked
from harness.watch.facts.loaded_states import StateLoading
from harness.watch.facts.saved_states import SavedState, SavedStates, StateSaved, Values, are_the_same, states_in
from harness.watch.facts.trained_models import ModelsFromCheckpoints, TrainedModels, are_alike, is_state_of, reached
from harness.watch.recogniser import Recogniser

OFTEN = 64
"""Evaluations of a model, each with a backward pass after it, from which on it is looked at seldom: a teacher is called
so in each update, and evaluations are fewer."""


class SavesBegun(Fact):
    """A run is over that saved a model. ``where`` is the first save of one that is trained in the first update."""

    needs = "model that is saved"
    only_before: bool = False
    """Whether that was before the first update, and nothing was saved again."""


class TrainedSaved(Fact):
    """A run is over that saved a model after an update, and not right before its last one."""

    needs = "model saved after its updates"
    untouched: bool = False
    """Whether all that was saved has the weights that the training began with, as far as that is known."""


class TrainedNotSaved(Fact):
    """A run is over that saved, after an update, nothing of what its updates made. ``where`` is the save."""

    saved: Literal["a copy as it began", "as loaded", "an earlier one"]
    """What it saved: a copy that nothing changed since the training began, a model as its checkpoint has it, or another
    of the same class whose training was over before that of the one that is saved nowhere began."""
    model: str
    """The name of its class."""
    update: int = 1
    """The updates that had been made."""
    until: tuple[int, int] = (0, 0)
    """The last updates of the one that was saved, and of the other."""


class EvaluatedSaved(Fact):
    """A model was evaluated since the latest backward pass, and a state was saved since. ``where`` is the save."""

    needs = "evaluation after the training, and a state saved after it"
    other: bool = False
    """Whether at the end of the run no state that was saved has the weights of an evaluation since then."""
    update: int = 1
    """The updates that had been made at the save."""


@dataclass(frozen=True)
class SavedFresh:
    name: str
    """Name of the model's class."""
    where: str | None
    update: int


class FirstSaves(Recogniser):
    makes = (SavesBegun,)

    def begin(self) -> None:
        self._asked: WeakSet[nn.Module] = WeakSet()
        """Modules whose state was asked for before the first update."""
        self._early: WeakKeyDictionary[nn.Module, str | None] = WeakKeyDictionary()
        """Modules that were saved before the first update, and where."""
        self._early_trained: list[str | None] = []
        """Where the first of them was saved that is trained in the first update; empty if none was."""
        self._late = False
        """Whether anything was saved after that."""
        self._knows_trained = False
        """Whether it is known which models are trained in the first update."""
        self._loaded_any = False
        """Whether a state was loaded into a module that the module did not hold anyway."""

    def on_from_pretrained(self, event: FromPretrained) -> None:
        self._early.clear()  # what was saved is what is loaded now
        self._early_trained.clear()

    def on_state_loading(self, event: StateLoading) -> None:
        self._loaded_any |= not event.of_model

    def on_state_asked(self, event: StateAsked) -> None:
        if not self.monitor.stepped:
            self._asked.add(event.module)

    def on_backward(self, event: Backward) -> None:
        for model in reached(event) if not self.monitor.stepped else ():
            self._knows_trained = True
            if not self._early_trained:
                self._early_trained += [where for saved, where in self._early.items() if share_parameters(saved, model)]

    def on_save(self, event: Save) -> None:
        states = states_in(event.what)
        if not states:
            return
        if self.monitor.stepped:
            self._late = True
            return
        modules: list[Any] = [state for state in states if isinstance(state, nn.Module)]
        modules += [module for module in self._asked if any(is_state_of(state, module) for state in states)]
        for module in modules:
            self._early.setdefault(module, event.where)

    def on_end(self, event: End) -> None:
        early = bool(self._early_trained) and event.at.complete and event.at.update > 2
        if early and not self._late and not self._loaded_any:
            self.tell(SavesBegun(only_before=True, where=self._early_trained[0]))
        elif self._late or (self._early and self._knows_trained):
            self.tell(SavesBegun())


class SavedModels(Recogniser):
    makes = (TrainedSaved, TrainedNotSaved)

    def begin(self) -> None:
        self._trained, self._loaded = self.fact(TrainedModels), self.fact(ModelsFromCheckpoints)
        self._states = self.fact(SavedStates)
        self._any = False
        """Whether anything was saved after an update."""
        self._saved_fresh: SavedFresh | None = None
        """The first that was saved after an update, and is one from a checkpoint as it was loaded."""
        self._saved_trained = False
        """Whether a model was saved that was trained."""

    def on_save(self, event: Save) -> None:
        states = states_in(event.what) if self.monitor.stepped else []
        if not states:
            return
        self._any = True
        trained = list(self._trained.all)
        self._saved_trained |= any(is_state_of(state, model) for state in states for model in trained)
        fresh = [model for model in self._loaded.as_loaded() if any(is_state_of(state, model) for state in states)]
        trained_frozen = any(share_parameters(model, other) for model in fresh for other in trained)
        names = [type(model).__name__ for model in fresh if type(model).__name__ in self._trained.names]
        if names and not trained_frozen:
            self._saved_fresh = self._saved_fresh or SavedFresh(names[0], event.where, event.at.updates_made)

    def on_end(self, event: End) -> None:
        latest = max((each.updates_made for each in self._states.saves), default=None)
        # What is saved may be meant to have the one update that came after it.
        if self._any and (latest is None or latest != event.at.updates_made - 1):
            whole = self._whole
            self.tell(TrainedSaved(untouched=bool(whole) and all(each.untouched for each in whole)))
        for found in (self._another(), self._as_it_was()) if event.at.complete else ():
            if found is not None:
                self.tell(found)

    @property
    def _whole(self) -> list[SavedState]:
        """What was saved of which it is known whether it is as the training began."""
        return [each for each in self._states.saves if each.values or each.is_base]

    def _as_it_was(self) -> TrainedNotSaved | None:
        whole = self._whole
        copies = [each for each in whole if each.untouched]
        if copies and len(copies) == len(whole) and not (self._saved_trained or self.monitor.passes_shortened):
            latest = copies[-1]
            return TrainedNotSaved(
                saved="a copy as it began",
                model=self._states.trained[latest.of].name,
                update=latest.updates_made,
                where=latest.where,
            )
        if self._saved_fresh is not None and not self._saved_trained:
            fresh = self._saved_fresh
            return TrainedNotSaved(saved="as loaded", model=fresh.name, update=fresh.update, where=fresh.where)
        return None

    def _another(self) -> TrainedNotSaved | None:
        """A teacher whose training was over before that of its student began."""
        saved = {each.of for each in self._states.saves}
        latest = max(self._states.trained, key=lambda number: self._states.trained[number].updates_made, default=None)
        if latest is None or not saved or latest in saved:
            return None
        last = self._states.trained[latest]
        kept = [self._states.trained[number] for number in saved]
        before = all(each.updates_made < last.began_at for each in kept)
        teach = all(each.references > 1 and each.shapes != last.shapes for each in kept)
        if before and teach and all(each.name == last.name for each in kept):
            saved_last = self._states.saves[-1]
            return TrainedNotSaved(
                saved="an earlier one",
                model=last.name,
                update=saved_last.updates_made,
                until=(kept[-1].updates_made + 1, last.updates_made + 1),
                where=saved_last.where,
            )
        return None


class EvaluatedModelsSaved(Recogniser):
    makes = (EvaluatedSaved,)

    def begin(self) -> None:
        self._states = self.fact(SavedStates)
        self._evaluated: dict[int, tuple[int, Values]] = {}
        """The weights that were evaluated since the latest backward pass, by number of the model, and the number of the
        one that is trained with such weights."""
        self._with_graph: dict[int, tuple[int, Values]] = {}
        """The weights of models that were called with a graph: evaluated, if a save comes before a backward pass."""
        self._followed: Counter[int] = Counter()
        """How often a backward pass came after that."""
        self._saved: list[SavedState] = []
        """What was saved since then."""
        self._suspect: SavedState | None = None
        """The first that is not among those."""
        self._compared = False

    def on_backward(self, event: Backward) -> None:
        self._compare()
        self._followed.update(self._evaluated.keys() | self._with_graph.keys())
        self._evaluated.clear()
        self._with_graph.clear()
        self._saved.clear()

    def on_saved(self, fact: StateSaved) -> None:
        if fact.saved.values:
            self._saved.append(fact.saved)
            self._evaluated = self._with_graph | self._evaluated
            self._with_graph = {}

    def on_load(self, event: Load) -> None:
        """What is evaluated from now on are other weights."""
        self._evaluated.clear()
        self._with_graph.clear()

    def on_forward(self, event: Forward) -> None:
        if event.model.training or not self.monitor.stepped:
            return
        number, seen = self.monitor.number_of(event.model), self._with_graph if event.gradients else self._evaluated
        if number not in seen and (self._followed[number] < OFTEN or self.monitor.is_sampled()):
            for of, values in self._states.values_of(event.model):
                seen[number] = of, values

    def _compare(self) -> None:
        """Compare what was evaluated since the latest backward pass with what was saved since."""
        latest = [each for each in self._saved if each.updates_made == self.monitor.updates_made]
        if not (latest and self._evaluated):
            return
        self._compared = True
        for of, values in self._evaluated.values() if self._suspect is None else ():
            saved = [each for each in latest if each.of == of]
            if saved and not any(
                are_the_same(other, each.values) for _, other in self._evaluated.values() for each in saved
            ):
                names = list(saved[-1].values)
                ones, others = (
                    torch.cat([each[name].float() for name in names]) for each in (values, saved[-1].values)
                )
                self._suspect = saved[-1] if are_alike(ones, others) else None

    def on_end(self, event: End) -> None:
        self._compare()
        suspect = self._suspect if event.at.complete and launch.is_main_process() else None
        if suspect is not None and self._is_saved_nowhere():
            self.tell(EvaluatedSaved(other=True, update=suspect.updates_made, where=suspect.where))
        elif self._compared:
            self.tell(EvaluatedSaved())

    def _is_saved_nowhere(self) -> bool:
        saves = [each for each in self._states.saves if each.values]
        if not all(each.current for each in saves):
            return False  # a copy is saved besides: the average, or the best
        evaluated = [values for _, values in self._evaluated.values()]
        return not any(are_the_same(each.values, values) for each in saves for values in evaluated)
