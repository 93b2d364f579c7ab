"""Adapters: what PEFT put around a model's layers, and which of its adapters were trained."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import torch
from torch import nn

from harness.torch_objects import held_by, is_distributed
from harness.watch.bus import Recogniser
from harness.watch.events import Backward, Forward, Step

if TYPE_CHECKING:
    from harness.watch.monitor import Monitor


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


class Adapters(Recogniser):
    """Of each model that is trained, which of its adapters were active in passes of the training."""

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.idle: dict[int, dict[str, list[tuple[str, torch.Tensor]]]] = {}
        """By the number of the model and their names, with their tensors: the model may be gone at the end."""
        self.active: dict[int, set[str]] = {}
        """The others."""
        self.made: dict[int, list[str]] = {}
        """All of them, in the order in which they were added."""
        self.held: dict[int, set[str]] = {}
        """Those of which an optimizer that steps holds a tensor."""
        self.trainable: dict[int, set[str]] = {}
        """Those of which a tensor has gradients in a step."""
        self.where: str | None = None
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
                self.where = event.where

    def on_backward(self, event: Backward) -> None:
        """A reference that is called beside the one that is trained counts as active: it is meant."""
        for model, active in self._since.items():
            number = self.monitor.number_of(model)
            known = self.active.setdefault(number, set())
            if number not in self.idle or active - known or self.monitor.is_sampled():
                known |= active
                self.made[number] = list(adapters_of(model))
                self.idle[number] = {n: self._tensors(model, n) for n in self.made[number] if n not in known}
        self._since.clear()

    def on_step(self, event: Step) -> None:
        if not event.sampled or not self.active:
            return
        held = {id(each) for each in held_by(event.optimizer)}
        for model in self._layers:
            number = self.monitor.number_of(model)
            for name in adapters_of(model) if number in self.active else ():
                tensors = [each for _, each in self._tensors(model, name)]
                if any(id(each) in held for each in tensors):
                    self.held.setdefault(number, set()).add(name)
                if any(each.requires_grad for each in tensors):
                    self.trainable.setdefault(number, set()).add(name)

    def _tensors(self, model: nn.Module, adapter: str) -> list[tuple[str, torch.Tensor]]:
        return [pair for layer in self._layers.get(model, {}).values() for pair in tensors_of(layer, adapter)]


def names(adapters: set[str]) -> str:
    """Of adapters, as a message lists them."""
    return ", ".join(map(repr, sorted(adapters))) or "none"
