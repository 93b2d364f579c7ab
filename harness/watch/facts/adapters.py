"""Adapters: what PEFT put around a model's layers, and which of its adapters were trained."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

import torch
from torch import nn

from harness.torch_objects import held_by, is_distributed
from harness.watch.events import Backward, BackwardBegins, End, Fact, Forward, Step
from harness.watch.recogniser import Recogniser

ADDED = {"SEQ_CLS": ("classifier", "score"), "TOKEN_CLS": ("classifier", "score"), "QUESTION_ANS": ("qa_outputs",)}
"""Names that PEFT itself puts into `modules_to_save`, of which a model has one, by the task of an adapter."""


def adapted_layers(model: nn.Module) -> dict[str, Any]:
    """The layers of a model that adapters are put around, by their names.

    They are known by what PEFT's ``BaseTunerLayer`` documents: ``adapter_layer_names``, ``active_adapters`` and
    ``get_base_layer``.
    """
    return {name: each for name, each in model.named_modules() if _is_adapted(each)}


def _is_adapted(module: nn.Module) -> bool:
    kind = type(module)
    return all(hasattr(kind, name) for name in ("adapter_layer_names", "active_adapters", "get_base_layer"))


def adapters_of(model: nn.Module) -> dict[str, Any]:
    """The configurations of a model's adapters, by their names; also of one within a module of the script's own."""
    for module in model.modules():
        configs = getattr(module, "peft_config", None)
        if isinstance(configs, dict):
            return configs
    return {}


def tensors_of(layer: Any, adapter: str) -> Iterator[tuple[str, torch.Tensor]]:
    """The tensors that an adapter has in a layer, each with what PEFT calls its kind: ``lora_A``, say."""
    for kind in layer.adapter_layer_names:
        held = getattr(layer, kind, None)
        if not isinstance(held, (nn.ModuleDict, nn.ParameterDict)) or adapter not in held:
            continue
        found = held[adapter]
        tensors = found.parameters() if isinstance(found, nn.Module) else [found] if torch.is_tensor(found) else []
        yield from ((kind, each) for each in tensors if not is_distributed(each))


class AdaptersActive(Fact):
    """A run is over that trained a model with adapters. ``where`` is where it was called."""

    needs = "model with adapters"
    of_run = True
    active: Collection[str] = ()
    """The adapters that were active in passes of the training."""
    frozen: Collection[str] = ()
    """Active adapters that an optimizer held while every tensor was frozen."""
    held: bool = True
    """Whether an optimizer held any of them."""
    never: Mapping[str, str] = field(default_factory=dict)
    """Adapters that were to be trained and never were, each with the kind of its tensors that is still zero."""


class Adapters(Recogniser):
    """Adapters of each model that is trained, and which of them were active in passes of the training."""

    makes = (AdaptersActive,)

    def begin(self) -> None:
        self._idle: dict[int, dict[str, list[tuple[str, torch.Tensor]]]] = {}
        """Model number to the names of its adapters, with their tensors: the model may be gone at the end."""
        self._active: dict[int, set[str]] = {}
        """The others."""
        self._made: dict[int, list[str]] = {}
        """All of them, in the order in which they were added."""
        self._held: dict[int, set[str]] = {}
        """Model number to the adapters of which an optimizer that steps holds a tensor."""
        self._trainable: dict[int, set[str]] = {}
        """Model number to the adapters of which a tensor has gradients in a step."""
        self._where: str | None = None
        """Where the latest model with adapters was trained."""
        self._since: WeakKeyDictionary[nn.Module, set[str]] = WeakKeyDictionary()
        """Adapters of each model that were active since the latest backward pass."""
        self._layers: WeakKeyDictionary[nn.Module, dict[str, Any]] = WeakKeyDictionary()

    def on_forward(self, event: Forward) -> None:
        if "peft" not in sys.modules:
            return
        if event.model not in self._layers or self.monitor.is_sampled():
            self._layers[event.model] = adapted_layers(event.model)
        layer = next(iter(self._layers[event.model].values()), None)
        if layer is not None:
            active = set() if getattr(layer, "disable_adapters", False) else set(layer.active_adapters)
            by_row = event.kwargs.get("adapter_names") or ()
            self._since.setdefault(event.model, set()).update(active, by_row)
            if event.gradients:
                self._where = event.where

    def on_backward(self, event: Backward) -> None:
        """A reference that is called beside the one that is trained counts as active: it is meant."""
        for model, active in self._since.items():
            number = self.monitor.number_of(model)
            known = self._active.setdefault(number, set())
            if number not in self._idle or active - known or self.monitor.is_sampled():
                known |= active
                self._made[number] = list(adapters_of(model))
                self._idle[number] = {n: self._tensors(model, n) for n in self._made[number] if n not in known}
        self._since.clear()

    def on_step(self, event: Step) -> None:
        if not event.sampled or not self._active:
            return
        held = {id(each) for each in held_by(event.optimizer)}
        for model in self._layers:
            number = self.monitor.number_of(model)
            for name in adapters_of(model) if number in self._active else ():
                tensors = [each for _, each in self._tensors(model, name)]
                if any(id(each) in held for each in tensors):
                    self._held.setdefault(number, set()).add(name)
                if any(each.requires_grad for each in tensors):
                    self._trainable.setdefault(number, set()).add(name)

    def on_end(self, event: End) -> None:
        for number, made in self._made.items() if event.at.complete else ():
            active, held = self._active[number], self._held.get(number, set())
            latest = max((i for i, name in enumerate(made) if name in active), default=-1)
            instead = bool(held) and not held & active
            never = {}
            for name, tensors in self._idle[number].items():
                zero = {kind for kind, _ in tensors} - {kind for kind, tensor in tensors if bool(tensor.any())}
                if zero and (made.index(name) > latest or (instead and name in held)):
                    never[name] = min(zero)
            trained = held & active
            frozen = trained if not self._trainable.get(number) else set[str]()
            self.tell(AdaptersActive(active=active, frozen=frozen, held=bool(trained), never=never, where=self._where))

    def _tensors(self, model: nn.Module, adapter: str) -> list[tuple[str, torch.Tensor]]:
        return [pair for layer in self._layers.get(model, {}).values() for pair in tensors_of(layer, adapter)]


def names(adapters: Collection[str]) -> str:
    """Names of adapters, as a message lists them."""
    return ", ".join(map(repr, sorted(adapters))) or "none"


class AdapterPattern(Fact):
    """A model is trained whose adapters say by numbers of blocks where they are. ``where`` is where it is called."""

    needs = "adapter with a pattern of target modules"
    in_windows = "first"
    adapted: int
    """Modules with an adapter."""
    skipped: Sequence[str] = ()
    """Modules without one that are like those but for the numbers in their names, and lie between them."""


class AdapterTargets(Fact):
    """A list of modules by which an adapter of a model that is trained was made. ``where`` is where it is called."""

    needs = "adapter with a list of modules"
    in_windows = "first"
    adapter: str = "default"
    option: str = "target_modules"
    """The option that has the list."""
    matched: Sequence[str] = ()
    absent: Sequence[str] = ()
    """Names that match no module of the model."""


class AdaptedWeights(Fact):
    """An adapter by names is in a model with fused weights of the same names. ``where`` the model is called."""

    needs = "adapter by names on a model with fused weights"
    in_windows = "first"
    adapted: Sequence[str] = ()
    """Modules and fused weights with an adapter that have one of the names."""
    missed: Sequence[str] = ()
    """Modules of the same names without an adapter."""


class AdapterPlaces(Recogniser):
    """Where adapters are put, at the first backward pass of each model."""

    makes = (AdapterPattern, AdapterTargets, AdaptedWeights)

    def begin(self) -> None:
        self._seen: WeakSet[nn.Module] = WeakSet()

    def on_backward_begins(self, event: BackwardBegins) -> None:
        for forward in event.forwards:
            if forward.gradients and forward.model not in self._seen:
                self._seen.add(forward.model)
                configs = adapters_of(forward.model).values()
                if configs and all(_is_pattern(each) for each in configs):
                    self._tell_of_pattern(forward.model, forward.where)
                self._tell_of_targets(forward.model, forward.where)
                self._tell_of_weights(forward.model, forward.where)

    def _tell_of_pattern(self, model: nn.Module, where: str | None) -> None:
        adapted = adapted_layers(model)
        kinds = {_alike(name): type(each.get_base_layer()) for name, each in adapted.items() if _number(name)}
        blocks: dict[str, dict[tuple[int, ...], tuple[bool, str]]] = defaultdict(dict)
        for name, module in model.named_modules():
            pattern = _alike(name)
            if pattern in kinds and (name in adapted or type(module) is kinds[pattern]):
                blocks[pattern][_number(name)] = name in adapted, name
        skipped: list[str] = []
        for alike in blocks.values():
            chosen = [is_adapted for is_adapted, _ in (alike[number] for number in sorted(alike))]
            if chosen != sorted(chosen):  # the last ones alone are a choice that is often made
                skipped += [name for is_adapted, name in alike.values() if not is_adapted]
        self.tell(AdapterPattern(adapted=len(adapted), skipped=sorted(skipped, key=_number), where=where))

    def _tell_of_targets(self, model: nn.Module, where: str | None) -> None:
        configs = getattr(model, "peft_config", None)
        if not isinstance(configs, dict):
            return
        names = {name.removesuffix(".base_layer") for name, _ in model.named_modules()}  # as before the adapter
        for adapter, config in configs.items():
            for option, added in (("target_modules", ()), ("modules_to_save", ADDED.get(_task(config), ()))):
                targets = getattr(config, option, None)
                if not isinstance(targets, (set, list, tuple)) or not targets:
                    continue
                absent = sorted({each for each in targets if not any(_is(name, each) for name in names)} - {*added})
                matched = sorted({target for target in targets if target not in absent})
                facts = AdapterTargets(adapter=adapter, option=option, matched=matched, absent=absent, where=where)
                self.tell(facts)

    def _tell_of_weights(self, model: nn.Module, where: str | None) -> None:
        configs = adapters_of(model).values()
        targets = {each for config in configs for each in _undotted(config)}
        layers = adapted_layers(model)
        fused = {
            name.replace("base_layer.", "").rpartition(".")[0::2]: weight
            for name, weight in model.named_parameters()
            # More than two dimensions: the weights of several experts, one behind the other.
            if weight.dim() > 2 and any(_holds(name.rpartition(".")[2], each) for each in targets)
        }
        if not targets or not fused:
            return
        wrapped = {(n.replace(".base_layer", ""), getattr(each, "parameter_name", "")) for n, each in layers.items()}
        around = tuple(f"{name}." for name in layers)
        modules = {
            name: name in layers
            for name, module in model.named_modules()
            if (isinstance(module, nn.Linear) or name in layers) and not name.startswith(around)
            if not hasattr(module, "parameter_name") and any(_holds(each, name.rpartition(".")[2]) for each in targets)
        }
        weights = {
            f"{owner}.{own}": (owner, own) in wrapped or each.requires_grad for (owner, own), each in fused.items()
        }
        found = modules | weights
        adapted, missed = ([name for name, has in found.items() if has is which] for which in (True, False))
        if adapted:
            self.tell(AdaptedWeights(adapted=adapted, missed=missed, where=where))


def _undotted(config: Any) -> set[str]:
    """The names by which an adapter was put everywhere; empty where places were chosen in any other way."""
    chosen = (getattr(config, name, None) for name in ("layers_to_transform", "exclude_modules"))
    modules, weights = (getattr(config, name, None) for name in ("target_modules", "target_parameters"))
    # None where fused weights alone were asked for; PEFT leaves an empty set where it takes all names for theirs.
    if any(each is not None for each in chosen) or not isinstance(modules, (set, list, tuple)):
        return set()
    return {each for each in (*modules, *(weights or ())) if "." not in each}


def _holds(fused: str, name: str) -> bool:
    """Whether a fused weight's name has a module's in it: ``gate_up_proj`` has ``up_proj``."""
    return fused == name or fused.endswith(f"_{name}")


def _is_pattern(config: Any) -> bool:
    """Whether it says by the numbers of blocks which of them are adapted, and not by the names that all have."""
    targets = getattr(config, "target_modules", None)
    if getattr(config, "layers_to_transform", None) is not None or getattr(config, "exclude_modules", None):
        return False
    if isinstance(targets, str):
        return targets != "all-linear"
    return isinstance(targets, (set, list, tuple)) and any(_number(f"{each}.") for each in targets)


def _number(name: str) -> tuple[int, ...]:
    """The numbers of the blocks that a module is in; its own, at the end, is none: such modules are no blocks."""
    return tuple(int(each) for each in name.split(".")[:-1] if each.isdigit())


def _alike(name: str) -> str:
    """What the names of modules have in common that are in blocks alike."""
    *outer, own = name.split(".")
    return ".".join([*("#" if each.isdigit() else each for each in outer), own])


def _task(config: Any) -> str:
    """What the adapter is for, as PEFT calls it; empty where that is not said."""
    task = getattr(config, "task_type", None)
    return str(getattr(task, "value", task) or "")


def _is(name: str, target: str) -> bool:
    return name == target or name.endswith(f".{target}")
