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
from harness.watch.bus import Recogniser
from harness.watch.events import Backward, BackwardBegins, End, Fact, Forward, Step

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
    """Those of them that an optimizer held while every tensor was frozen."""
    held: bool = True
    """Whether an optimizer held any of them."""
    never: Mapping[str, str] = field(default_factory=dict)
    """Adapters that were to be trained and never were, each with the kind of its tensors that is still zero."""


class Adapters(Recogniser):
    """Of each model that is trained, which of its adapters were active in passes of the training."""

    makes = (AdaptersActive,)

    def begin(self) -> None:
        self._idle: dict[int, dict[str, list[tuple[str, torch.Tensor]]]] = {}
        """By the number of the model and their names, with their tensors: the model may be gone at the end."""
        self._active: dict[int, set[str]] = {}
        """The others."""
        self._made: dict[int, list[str]] = {}
        """All of them, in the order in which they were added."""
        self._held: dict[int, set[str]] = {}
        """Those of which an optimizer that steps holds a tensor."""
        self._trainable: dict[int, set[str]] = {}
        """Those of which a tensor has gradients in a step."""
        self._where: str | None = None
        """Where the latest model with adapters was trained."""
        self._since: WeakKeyDictionary[nn.Module, set[str]] = WeakKeyDictionary()
        """Those that were active since the latest backward pass."""
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
    """Of adapters, as a message lists them."""
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
    """Those that match no module of the model."""


class AdapterPlaces(Recogniser):
    """Where adapters are put, at the first backward pass of each model."""

    makes = (AdapterPattern, AdapterTargets)

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
