"""Saved states: whose they are, what they lack, and when the model had their values."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary, ref

import torch
from torch import nn
from torch.optim import Optimizer

from harness import launch
from harness.torch_objects import first_values, held_by, is_distributed
from harness.watch.bounded import FirstByKey, Latest
from harness.watch.events import Backward, End, Fact, Forward, Load, OptimizerMade, Save, StateAsked, Step
from harness.watch.facts.adapters import adapted_layers
from harness.watch.facts.trained_models import reached
from harness.watch.recogniser import Recogniser

WRAPPERS = ("module.", "_orig_mod.")
"""What DistributedDataParallel, AveragedModel and torch.compile put before the names."""

MATRICES = 4
"""Matrices of a model that tell its states apart: any update changes them."""

MOST_VALUES = 1024
"""Values of each that are kept, and of each buffer."""

OWN_NAMES = 4
"""Names at the end of a layer's that say which it is, in the base as within what an adapter puts around it."""

MIN_SHARE = 0.5
"""Smallest share of a state's tensors that have a place in a model for it to be one of that model."""

Values = Mapping[str, torch.Tensor]


@dataclass(eq=False)
class Trained:
    """A model that is trained, as it was when that began."""

    name: str
    trainable: set[str]
    """The names of what has gradients, without those of wrappers."""
    began: Values
    """The first values of a few of its matrices."""
    buffers: Values
    """Values of the buffers that are in its state."""
    base: Values
    """First values of the own weights of a few layers that adapters are put around, by the ends of their names in a
    state of the base alone."""
    adapted_by_hand: bool = False
    """Whether these are in modules of the script's own."""
    changed: set[str] = field(default_factory=set)
    """Buffers that have other values now."""
    began_at: int = 0
    """Updates that had been made by then."""
    updates_made: int = 0
    """When the latest backward pass went through it."""
    passes: int = 0
    """Backward passes that went through it."""
    steps: int = 0
    """Steps of optimizers that hold parameters of it."""
    references: int = 0
    """Backward passes of others before which it was called without gradients."""

    @property
    def shapes(self) -> list[torch.Size]:
        return [each.shape for each in self.began.values()]


@dataclass(frozen=True)
class SavedState:
    """A state, or a module, that was saved; or a part of one."""

    of: int
    """The number of the model that it is a state of."""
    has: frozenset[str]
    """The names of the model's tensors that are in it, in a copy or themselves."""
    stale: frozenset[str]
    """Names of buffers that have the values of before the training, though parameters have others, and the model."""
    not_finite: frozenset[str]
    """Names of tensors with values that are not finite, where the model's were when the training began."""
    values: Values
    """The first values of a few of its matrices."""
    untouched: bool
    """Whether they are those that the training began with, though the model had others by then."""
    current: bool
    """Whether they are those that the model had then."""
    is_base: bool
    """Whether it is the model without what its adapters have learnt."""
    where: str | None
    updates_made: int
    asked: StateGiven | None
    """When the model was asked for this state, if that was some updates before."""
    passes: int = 0
    """Backward passes that had gone through the model by then."""
    steps: int = 0
    """Steps that optimizers had made with its parameters."""


@dataclass(frozen=True)
class StateGiven:
    """A state that a model gave; its tensors are the model's own and change with it."""

    state: ref[Any]
    updates_made: int
    where: str | None


class StateSaved(Fact):
    """A state of a model that is trained was saved after updates. ``where`` is the save."""

    needs = "state that was kept and saved later"
    saved: SavedState
    path: str | None = None
    """The file; None where it is a folder, or no path at all."""


class ModelSaves(Fact):
    """A run is over in which a model was trained: what was saved of it. ``where`` is the latest save."""

    trained: Trained
    saves: Sequence[SavedState] = ()
    """Saves in their order."""
    stages: Collection[int] = ()
    """After how many updates optimizers were made, since the latest state was loaded into a model."""


class SavedStates(Recogniser):
    """What was saved of the models that are trained, whatever it was saved with."""

    makes = (StateSaved, ModelSaves)

    def begin(self) -> None:
        self.trained = FirstByKey[int, Trained](16)  # each with values of all of its buffers
        """Trained models by number."""
        self.saves = Latest[SavedState]()
        self._stages: set[int] = set()
        self._alive: WeakKeyDictionary[nn.Module, int] = WeakKeyDictionary()
        self._held: WeakKeyDictionary[Optimizer, tuple[int, int]] = WeakKeyDictionary()
        """How many tensors with gradients each optimizer held, and of how many models, when they were looked at."""
        self._steps: WeakKeyDictionary[Optimizer, list[Trained]] = WeakKeyDictionary()
        """Optimizer to the models of which it holds parameters."""
        self._given = Latest[StateGiven]()

    def on_forward(self, event: Forward) -> None:
        new = event.gradients and event.model not in self._alive
        if new and self.trained.takes(number := self.monitor.number_of(event.model)):
            named, buffers = _own(event.model)
            matrices = [name for name, each in named.items() if each.requires_grad and each.dim() > 1]
            self._alive[event.model] = number
            base = _adapted(event.model)
            self.trained[number] = Trained(
                type(event.model).__name__,
                set(),
                {name: _beginning(named[name]) for name in _spread(matrices)},
                {name: _beginning(each) for name, each in buffers.items()},
                base,
                bool(base) and not adapted_layers(event.model),
                began_at=self.monitor.updates_made,
            )

    def on_backward(self, event: Backward) -> None:
        for model in reached(event):
            if model in self._alive:
                trained = self.trained[self._alive[model]]
                trained.updates_made, trained.passes = self.monitor.updates_made, trained.passes + 1
        for forward in event.forwards:
            if not forward.gradients and forward.model in self._alive:
                self.trained[self._alive[forward.model]].references += 1

    def on_step(self, event: Step) -> None:
        """What is thawed later is trained, too."""
        held = {id(each) for each in held_by(event.optimizer) if each.requires_grad} if event.sampled else set()
        known = len(held), len(self._alive)
        if held and self._held.get(event.optimizer) != known:
            self._held[event.optimizer] = known
            self._steps[event.optimizer] = []
            for model, number in self._alive.items():
                mine = {n for n, each in _own(model)[0].items() if id(each) in held}
                self.trained[number].trainable |= mine
                self._steps[event.optimizer] += [self.trained[number]] if mine else []
        for trained in self._steps.get(event.optimizer, ()):
            trained.steps += 1

    def on_state_asked(self, event: StateAsked) -> None:
        if isinstance(event.state, OrderedDict):  # which can be referred to, as no plain dictionary can
            self._given.append(StateGiven(ref(event.state), self.monitor.updates_made, event.where))

    def on_save(self, event: Save) -> None:
        saved = list(self._saves(event)) if self.monitor.stepped else []
        self.saves.extend(saved)
        for each in saved:
            self.tell(StateSaved(saved=each, path=event.path, where=event.where))

    def on_optimizer_made(self, event: OptimizerMade) -> None:
        self._stages.add(event.at.updates_made)
        for model, number in self._alive.items():  # adapters may be put into what was trained before
            trained = self.trained[number]
            trained.base = trained.base or _adapted(model)
            trained.adapted_by_hand = bool(trained.base) and not adapted_layers(model)

    def on_load(self, event: Load) -> None:
        if isinstance(event.into, nn.Module):
            self._stages.clear()

    def on_end(self, event: End) -> None:
        if not launch.is_main_process():
            return
        for number, trained in self.trained.items():
            saves = [saved for saved in self.saves if saved.of == number]
            where = saves[-1].where if saves else None
            self.tell(ModelSaves(trained=trained, saves=saves, stages=self._stages, where=where))

    def _saves(self, event: Save) -> Iterator[SavedState]:
        for state in states_in(event.what):
            tensors = _tensors(state)
            alive = {number: model for model, number in self._alive.items()}
            for number, trained in self.trained.items():
                is_base = _is_base(tensors, trained.base)
                saved = self._saved(state, tensors, alive[number], number, event.where) if number in alive else None
                if is_base is not None:
                    yield self._without_adapters(number, is_base, event.where)
                elif saved is not None:
                    yield saved
                elif trained.base and _has_adapters(tensors):  # copies under names that PEFT gives them in a file
                    yield self._without_adapters(number, False, event.where)

    def _without_adapters(self, number: int, is_base: bool, where: str | None) -> SavedState:
        """The base, or what its adapters were merged into, or they themselves."""
        nothing: frozenset[str] = frozenset()
        has = nothing if is_base else frozenset({*self.trained[number].trainable, *self.trained[number].buffers})
        made, trained = self.monitor.updates_made, self.trained[number]
        counted = trained.passes, trained.steps
        return SavedState(number, has, nothing, nothing, {}, False, False, is_base, where, made, None, *counted)

    def _saved(
        self, state: Any, tensors: dict[str, torch.Tensor], model: nn.Module, number: int, where: str | None
    ) -> SavedState | None:
        trained, (named, buffers) = self.trained[number], _own(model)
        own = {**named, **buffers}
        placed = _placed(tensors, own)
        parts = _themselves(tensors, own)
        if not placed and not parts:
            return None
        trained.changed |= {
            name
            for name, each in buffers.items()
            if name in trained.buffers and _differ(_beginning(each), trained.buffers[name])
        }
        values = {name: _beginning(placed[name]) for name in trained.began if name in placed}
        now = {name: _beginning(named[name]) for name in values if name in named}
        stale = {
            name
            for name in trained.changed & set(placed)
            if values
            and not are_the_same(values, trained.began)
            and not _differ(_beginning(placed[name]), trained.buffers[name])
        }
        infinite = {
            name
            for name, each in placed.items()
            if each.is_floating_point()
            and not bool(each.isfinite().all())
            and (name not in trained.buffers or bool(trained.buffers[name].isfinite().all()))
        }
        around = {name: each for name, each in tensors.items() if placed and each.dtype is torch.float16}
        mine = {id(each) for each in placed.values()}
        # What is around the model that is called was not seen before; minus infinity is in masks.
        infinite |= {
            name
            for name, each in around.items()
            if id(each) not in mine and bool((each.isnan() | each.isposinf()).any())
        }
        untouched = are_the_same(values, trained.began) and not are_the_same(now, trained.began)
        current = are_the_same(values, now)
        given = next((each for each in self._given if each.state() is state), None)
        if given is not None and not (given.updates_made < self.monitor.updates_made and _is_live(placed, named)):
            given = None
        renamed = trained.trainable - set(named)  # since then, as by an adapter that was put around a layer
        has, made = frozenset(placed) | parts | renamed, self.monitor.updates_made
        stales, infinites = frozenset(stale), frozenset(infinite)
        counted = trained.passes, trained.steps
        return SavedState(
            number, has, stales, infinites, values, untouched, current, False, where, made, given, *counted
        )

    def model_of(self, saved: SavedState) -> nn.Module | None:
        """The model whose values are those that were saved; None if it is gone, or has others."""
        model = next((each for each, number in self._alive.items() if number == saved.of), None)
        if model is None:
            return None
        named, _ = _own(model)
        now = {name: _beginning(named[name]) for name in saved.values if name in named}
        return model if are_the_same(saved.values, now) else None

    def values_of(self, model: nn.Module) -> Iterator[tuple[int, Values]]:
        """The first values that a model has now, with the number of each trained model of its names and shapes."""
        named, _ = _own(model)
        for number, trained in self.trained.items():
            alike = self._alive.get(model) == number or set(trained.began) <= set(named)
            values = {name: _beginning(named[name]) for name in trained.began if name in named} if alike else {}
            if values and all(values[name].shape == each.shape for name, each in trained.began.items()):
                yield number, values


def states_in(what: Any) -> list[Any]:
    """The states of modules within what is saved, and the modules."""
    if isinstance(what, nn.Module):
        return [what]
    if not isinstance(what, Mapping):
        return []
    if any(torch.is_tensor(value) for value in what.values()):
        return [what]
    return [state for value in what.values() for state in states_in(value)]


def are_the_same(ones: Values, others: Values) -> bool:
    """Whether what both have is the same, but for the rounding to half precision; False where they share no name."""
    shared = [name for name in ones if name in others]
    return bool(shared) and not any(_differ(ones[name], others[name]) for name in shared)


def _own(model: nn.Module) -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]:
    """A model's parameters, and its buffers that are in its state, by their names without those of wrappers."""
    parameters: dict[str, torch.Tensor] = {
        _bare(name): each for name, each in model.named_parameters(remove_duplicate=False) if _is_here(each)
    }
    buffers = {
        _bare(f"{prefix}.{name}" if prefix else name): each
        for prefix, module in model.named_modules()
        for name, each in module._buffers.items()
        if each is not None and _is_here(each) and name not in module._non_persistent_buffers_set
    }
    return parameters, buffers


def _is_here(tensor: torch.Tensor) -> bool:
    """Whether it has values, all of them in this process."""
    return not tensor.is_meta and not is_distributed(tensor)


def _bare(name: str) -> str:
    while name.startswith(WRAPPERS):
        name = name.partition(".")[2]
    return name


def _spread(names: list[str]) -> list[str]:
    return names[:: max(1, len(names) // MATRICES)][:MATRICES]


def _adapted(model: nn.Module) -> dict[str, torch.Tensor]:
    """First values of the own weights of a few layers that are adapted, by the ends of their names."""
    layers = {name: each.get_base_layer() for name, each in adapted_layers(model).items()}
    weights = {name: getattr(each, "weight", None) for name, each in layers.items()} or _adapted_by_hand(model)
    found = {name: each for name, each in weights.items() if torch.is_tensor(each) and _is_here(each)}
    return {".".join([*name.split(".")[-OWN_NAMES:], "weight"]): _beginning(found[name]) for name in _spread([*found])}


def _adapted_by_hand(model: nn.Module) -> dict[str, torch.Tensor]:
    """The weights of frozen layers that modules of the script's own have beside two trainable matrices of low rank.

    By the name of that module, which the layer had before, and has in a state of the base alone.
    """
    found: dict[str, torch.Tensor] = {}
    for name, module in model.named_modules():
        frozen = [each for each in module.children() if isinstance(each, nn.Linear) and not each.weight.requires_grad]
        if not name or len(frozen) != 1:
            continue
        outputs, inputs = frozen[0].weight.shape
        matrices = [each.shape for each in module.parameters() if each.requires_grad and each.dim() == 2]
        ranks = {shape[0] for shape in matrices if shape[1] == inputs}
        ranks &= {shape[1] for shape in matrices if shape[0] == outputs}
        if any(rank < min(outputs, inputs) for rank in ranks):
            found[name] = frozen[0].weight
    return found


def _is_base(tensors: Mapping[str, torch.Tensor], base: Values) -> bool | None:
    """Whether adapted layers are in a state as they were; None where they are not in it, or adapters are."""
    if not base or _has_adapters(tensors):
        return None
    found = {end: each for end in base for name, each in tensors.items() if f".{name}".endswith(f".{end}")}
    return not any(_differ(_beginning(each), base[end]) for end, each in found.items()) if found else None


def _has_adapters(tensors: Mapping[str, torch.Tensor]) -> bool:
    return any("lora_" in name or ".base_layer." in name for name in tensors)


def _tensors(state: Any) -> dict[str, torch.Tensor]:
    """The tensors of a state or a module, by their names without those of wrappers."""
    if isinstance(state, nn.Module):
        parameters, buffers = _own(state)
        return {**parameters, **buffers}
    return {_bare(str(name)): each for name, each in state.items() if torch.is_tensor(each) and _is_here(each)}


def _themselves(tensors: Mapping[str, torch.Tensor], own: Mapping[str, torch.Tensor]) -> frozenset[str]:
    """The names in a model of those of its tensors that are in a state under whatever name: that of a part of it."""
    pointers = {each.data_ptr() for each in tensors.values() if each.numel()} - {0}
    return frozenset(name for name, each in own.items() if each.data_ptr() in pointers)


def _placed(tensors: Mapping[str, torch.Tensor], own: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """A state's tensors, by the names that they have in a model; empty if it is none of this model's."""
    prefixes = {"", *(_prefix(tensors, name) for name in list(own)[:: max(1, len(own) // MATRICES)])}
    best: dict[str, torch.Tensor] = {}
    for prefix in prefixes:
        placed = {
            name: tensors[prefix + name]
            for name, each in own.items()
            if prefix + name in tensors and tensors[prefix + name].shape == each.shape
        }
        best = max(best, placed, key=len)
    return best if len(best) >= MIN_SHARE * len(tensors) else {}


def _prefix(tensors: Mapping[str, torch.Tensor], name: str) -> str:
    """What stands before a name in a state: that of an attribute of what holds the model."""
    return next((each.removesuffix(name) for each in tensors if each.endswith(f".{name}")), "")


def _beginning(tensor: torch.Tensor) -> torch.Tensor:
    return first_values(tensor, MOST_VALUES)


def _differ(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether values differ in the type of those that are less precise."""
    coarser = min(one.dtype, other.dtype, key=lambda dtype: dtype.itemsize)
    return one.shape != other.shape or not torch.equal(one.to(coarser), other.to(coarser))


def _is_live(placed: Mapping[str, torch.Tensor], own: Mapping[str, torch.Tensor]) -> bool:
    """Whether the tensors of a state are those of the model."""
    return all(each.data_ptr() == own[name].data_ptr() for name, each in placed.items() if name in own)
