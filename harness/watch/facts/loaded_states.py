"""Loaded states: what became of the states and checkpoints that are loaded into models."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakSet, ref

import torch
from torch import nn
from torch.utils.weak import WeakIdKeyDictionary

from harness.torch_objects import held_by, is_distributed, share_parameters, version
from harness.watch.bounded import Latest
from harness.watch.events import (
    Backward,
    End,
    Fact,
    Forward,
    FromPretrained,
    Load,
    LoadBegins,
    ModelMade,
    Save,
    StateAsked,
)
from harness.watch.facts.new_weights import NewWeights, lacking
from harness.watch.facts.trained_models import ModelsFromCheckpoints, TrainedModels, are_alike, pretrained_in, reached
from harness.watch.recogniser import Recogniser

LOADED_WEIGHT_RTOL = 1e-2
"""How near weights must be to those that were loaded: half precision and back is nearer."""

MIN_SHARE = 0.5
"""Smallest share of a module's parameters whose memory a state shares that makes it the module's own."""


class PretrainedCalled(Fact):
    """A model that is or has a model of transformers was called for the first time. ``where`` is the call."""

    needs = "model of transformers"
    model: str = "BertModel"
    """The name of its class."""
    configured: str | None = None
    """The checkpoint that its configuration names, where it is trained with new weights and none were ever loaded."""


class CheckpointTrained(Fact):
    """A model that was loaded from a checkpoint was called for the first time. ``where`` is the call."""

    needs = "pretrained checkpoint"
    tensors: int
    """Matrices of it that were looked at."""
    changed: int = 0
    """Matrices that have nothing of what was loaded any more, where no optimizer has stepped."""


class LoadedAfterTraining(Fact):
    """A checkpoint or a state was loaded into a model after updates had been made."""

    needs = "model loaded after the training"


class RandomWeightsUsed(Fact):
    """A run is over in which such a model was called or saved with weights that nothing had loaded or trained.

    ``where`` loaded the others.
    """

    model: str
    """The name of its class."""
    tensors: Sequence[str]
    """The names of these weights."""


class LoadedUnused(Fact):
    """A run is over in which a state was loaded into a model that nobody used, beside one of its kind that trained."""

    model: str
    """The name of its class."""
    update: int = 1
    """When it was loaded."""


class StateLoading(Fact):
    """A state is about to be loaded into a model."""

    needs = "state loaded into a model"
    of_model: bool
    """Whether it shares its memory with the model, which updates have changed since it was asked for."""
    kept_at: str | None = None
    """Where this model was asked for that state; None where it is another object since, or that of another model with
    the same parameters."""


@dataclass(eq=False)
class _Loaded:
    """A model that was loaded when updates had been made, and has weights that were not."""

    model: ref[nn.Module]
    name: str
    """Name of its class."""
    new: NewWeights
    used: bool = False
    """Whether it was called or saved with them."""


@dataclass(eq=False)
class UnusedModule:
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


@dataclass(frozen=True)
class StateWanted:
    """A state that a module was asked for, as it was then."""

    state: ref[Any]
    steps: int
    """Steps of optimizers that hold tensors of the module."""
    writes: int
    """Into tensors of the module."""
    module: ref[nn.Module]
    where: str | None


class FirstCalls(Recogniser):
    makes = (PretrainedCalled, CheckpointTrained)

    def begin(self) -> None:
        self._loaded = self.fact(ModelsFromCheckpoints)
        self._loaded_any = False
        self._from_checkpoints: WeakSet[nn.Module] = WeakSet()
        """Modules of models that were loaded, which a script may put into one of its own."""
        self._made: WeakSet[nn.Module] = WeakSet()
        self._seen: WeakSet[nn.Module] = WeakSet()

    def on_model_made(self, event: ModelMade) -> None:
        self._made.add(event.model)

    def on_from_pretrained(self, event: FromPretrained) -> None:
        if isinstance(event.model, nn.Module):
            self._from_checkpoints.update(event.model.modules())

    def on_load(self, event: Load) -> None:
        self._loaded_any = self._loaded_any or (isinstance(event.into, nn.Module) and bool(event.state))

    def on_forward(self, event: Forward) -> None:
        if event.model in self._seen:
            return
        self._seen.add(event.model)
        pretrained = pretrained_in(event.model)
        if pretrained:
            self._tell_of(pretrained[0], event)
        for module in pretrained:
            loaded = self._loaded.spread.get(module, [])
            if loaded:
                left = self.monitor.stepped or [_is_left(p, value) for p, value in loaded]
                changed = 0 if left is True else left.count(False)
                self.tell(CheckpointTrained(tensors=len(loaded), changed=changed, where=event.where))

    def _tell_of(self, module: nn.Module, event: Forward) -> None:
        name = getattr(getattr(module, "config", None), "name_or_path", "")
        loaded = self._loaded_any or any(part in self._from_checkpoints for part in module.modules())
        new = module in self._made and event.gradients and event.at.update == 1 and not loaded
        configured = str(name) if name and new else None
        self.tell(PretrainedCalled(model=type(module).__name__, configured=configured, where=event.where))


class ModelsLoadedLater(Recogniser):
    makes = (LoadedAfterTraining, RandomWeightsUsed)

    def begin(self) -> None:
        self._given = WeakIdKeyDictionary()
        """The parameters that a checkpoint or a state gave their values."""
        self._new: list[_Loaded] = []
        self._trained: WeakSet[nn.Module] = WeakSet()

    def on_from_pretrained(self, event: FromPretrained) -> None:
        absent = lacking(event.model, event.info)
        self._given.update({each: None for name, each in event.model.named_parameters() if name not in absent})
        if self.monitor.stepped:
            self.tell(LoadedAfterTraining(where=event.where))
            self._is_new(event.model, absent, event.where)

    def on_load(self, event: Load) -> None:
        if not isinstance(event.into, nn.Module):
            return
        named = dict(event.into.named_parameters(remove_duplicate=False))
        self._given.update({each: None for name, each in named.items() if name in event.state})
        if self.monitor.stepped and event.state:
            self.tell(LoadedAfterTraining(where=event.where))
            missing = {name: each for name, each in named.items() if each not in self._given and _is_random(each)}
            absent = {name: each for name, each in missing.items() if not _is_left_aside(event.into, name)}
            if len(absent) < len(named) / 2:  # of a state that has nothing for it another check tells
                self._is_new(event.into, absent, event.where)

    def _is_new(self, model: nn.Module, absent: Mapping[str, torch.Tensor], where: str | None) -> None:
        self._new = [each for each in self._new if each.model() is not model]
        if absent and model not in self._trained:
            self._new.append(_Loaded(ref(model), type(model).__name__, NewWeights.of(absent, where)))

    def on_forward(self, event: Forward) -> None:
        if not event.gradients:
            self._is_used(event.model)

    def on_save(self, event: Save) -> None:
        if isinstance(event.what, nn.Module):
            self._is_used(event.what)

    def _is_used(self, by: nn.Module) -> None:
        for loaded in self._new:
            model = loaded.model()
            if not loaded.used and model is not None and any(module is model for module in by.modules()):
                loaded.used = loaded.new.are_as_made(dict(model.named_parameters(remove_duplicate=False)))

    def on_backward(self, event: Backward) -> None:
        for model in reached(event):
            if model not in self._trained:
                self._trained.update(model.modules())
                self._new = [each for each in self._new if each.model() is None or each.model() not in self._trained]

    def on_end(self, event: End) -> None:
        for loaded in self._new:
            if loaded.used:
                tensors, where = list(loaded.new.tensors), loaded.new.where
                self.tell(RandomWeightsUsed(model=loaded.name, tensors=tensors, where=where))


class LoadedStates(Recogniser):
    makes = (LoadedUnused, StateLoading)

    def begin(self) -> None:
        self._trained = self.fact(TrainedModels)
        self._unused = Latest[UnusedModule]()
        self._used: WeakSet[nn.Module] = WeakSet()
        self._asked = Latest[StateWanted]()

    def on_load_begins(self, event: LoadBegins) -> None:
        if isinstance(event.into, nn.Module):
            asked = next((each for each in self._asked if each.state() is event.state), None)
            of_model = event.at.update > 1 and self._is_of_the_model(event, asked)
            kept_at = asked.where if asked is not None and asked.module() is event.into else None
            kept_at = None if kept_at == event.where else kept_at
            self.tell(StateLoading(of_model=of_model, kept_at=kept_at, where=event.where))

    def _is_of_the_model(self, event: LoadBegins, asked: StateWanted | None) -> bool:
        own = dict(event.into.named_parameters())
        shared = [
            name
            for name, value in event.state.items()
            if name in own and torch.is_tensor(value) and value.data_ptr() == own[name].data_ptr() and value.numel()
        ]
        return bool(shared) and len(shared) >= MIN_SHARE * len(own) and not self._is_written(event, asked)

    def on_load(self, event: Load) -> None:
        if not isinstance(event.into, nn.Module) or not event.state:
            return
        name = type(event.into).__name__
        loaded = UnusedModule(ref(event.into), name, event.where, max(1, self.monitor.updates_made))
        if event.into not in self._used and not any(map(loaded.is_part_of, self._used)):
            self._unused.append(loaded)

    def on_forward(self, event: Forward) -> None:
        self._use(event.model)

    def on_state_asked(self, event: StateAsked) -> None:
        self._use(event.module)
        if isinstance(event.state, OrderedDict):
            steps, writes = self._steps(event.module), _writes(event.module)
            self._asked.append(StateWanted(ref(event.state), steps, writes, ref(event.module), event.where))

    def on_save(self, event: Save) -> None:
        if isinstance(event.what, nn.Module):
            self._use(event.what)

    def _use(self, model: nn.Module) -> None:
        if model not in self._used:
            self._used.add(model)
            self._unused = Latest(each for each in self._unused if not each.is_part_of(model))
        for each in self._unused:
            each.passed_over = True

    def on_end(self, event: End) -> None:
        names = {type(model).__name__ for model in self._trained.all}
        for state in self._unused if event.at.complete else ():
            if state.passed_over and state.name in names and not any(map(state.is_part_of, self._trained.all)):
                self.tell(LoadedUnused(model=state.name, update=state.update, where=state.where))

    def _is_written(self, event: LoadBegins, asked: StateWanted | None) -> bool:
        """Whether it was the script that changed the state since it was asked for, and no update."""
        if asked is None:
            return False
        return asked.steps == self._steps(event.into) and asked.writes < _writes(event.into)

    def _steps(self, module: nn.Module) -> int:
        own = {id(p) for p in module.parameters()}
        optimizers = list(self.monitor.optimizers.items())
        return sum(seen.steps for optimizer, seen in optimizers if any(id(p) in own for p in held_by(optimizer)))


def _is_left(parameter: torch.Tensor, value: torch.Tensor) -> bool:
    """Whether a tensor has something of what was loaded: initialised again, it is independent of that."""
    if parameter.shape != value.shape:
        return True  # embeddings that were resized
    now, before = parameter.detach().float(), value.to(parameter.device, parameter.dtype).float()
    return torch.allclose(now, before, rtol=LOADED_WEIGHT_RTOL, atol=LOADED_WEIGHT_RTOL**2) or are_alike(now, before)


def _is_random(tensor: torch.Tensor) -> bool:
    """Whether it was drawn: constants, such as a norm's, are often left out and made again."""
    if tensor.dim() < 2 or tensor.is_meta or is_distributed(tensor):
        return False
    return bool((tensor != tensor.flatten()[0]).any())


def _is_left_aside(model: nn.Module, name: str) -> bool:
    """Whether nothing had to load a weight.

    PEFT keeps the module that it has a trained copy of, and calls the copy. And a weight of a layer of torch's that was
    never written to was copied from elsewhere, perhaps from a model that was trained: the layer writes those that it
    draws itself.
    """
    above, kept, _ = name.partition("original_module.")
    if kept and hasattr(model.get_submodule(above.rstrip(".")), "modules_to_save"):
        return True
    owner, _, own = name.rpartition(".")
    layer = model.get_submodule(owner)
    return type(layer).__module__.startswith("torch.nn.") and version(getattr(layer, own)) == 0


def _writes(module: nn.Module) -> int:
    return sum(map(version, module.parameters()))
