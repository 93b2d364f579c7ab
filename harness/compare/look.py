"""What one update is made of, tensors and all: kept by one start of a script, read beside what another has kept.

The file is one that torch loads with ``weights_only``: tensors, numbers, words, and lists and dicts of them.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

from harness.compare.names import matched
from harness.digests import named_models, named_tensors
from harness.fingerprint import fingerprint
from harness.starts import child
from harness.starts.orders import Keep, Orders
from harness.starts.recorder import Recording
from harness.torch_objects import is_dense, unchanged_random_state
from harness.watch.bus import OutcomeListener
from harness.watch.events import Backward, Forward, Step, StepBegins
from harness.watch.facts.twins import Twin
from harness.watch.guards import Guard
from harness.watch.monitor import Monitor
from harness.watch.run.batches import tensors_in

LARGEST = 2**31
"""Bytes of modules' outputs that are kept of an update; of what comes after, nothing is."""

Calls = list[tuple[str, str, list[torch.Tensor]]]
"""Name in the model, class and outputs of each module that was called."""


def record(orders: Orders) -> int:
    """Run a script that is compared, and keep what its orders say of it."""

    def looks(recording: Recording) -> list[partial[Look]]:
        return [] if orders.keep is None else [partial(Look, recording=recording, keep=orders.keep)]

    return child.record(orders, looks)


class Look(OutcomeListener):
    """Keeps what the first forward pass of one update computes, module by module, and what the update does.

    With what another start has kept it also calls the model of this one with the other's rows, weights and random
    numbers, so that what is computed can be told from what it is computed from.
    """

    id = "compare::look"

    def __init__(self, monitor: Monitor, recording: Recording, keep: Keep) -> None:
        self.monitor, self._recording, self._keep = monitor, recording, keep
        self._recorder = next(each for each in recording.recorders if each.monitor is monitor)
        self._models: list[nn.Module] = []
        """Models that were called in the update that is kept."""
        self._calls: list[tuple[nn.Module, list[torch.Tensor]]] = []
        self._bytes = self._depth = 0
        self._before: dict[int, torch.Tensor] = {}
        """Copies of the tensors of models before they were called, by the ``id`` of the tensor."""
        self._kept: dict[str, Any] = {}
        self._handles: list[Any] = []
        if keep.update == 1:
            self._begin()

    def _begin(self) -> None:
        guard = Guard(lambda error: self.monitor.bus.leave_out(self, error))
        after = register_module_forward_hook(guard.guarded(self._called), always_call=True)
        self._handles = [register_module_forward_pre_hook(guard.guarded(self._is_called)), after]
        self._depth = 0

    def _end(self) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def _is_called(self, module: nn.Module, args: Any) -> None:
        self._depth += 1
        if self._depth > 1 or not torch.is_grad_enabled() or self.monitor.suspended.depth:
            return
        for tensor in named_tensors([module]).values():
            if id(tensor) not in self._before:
                self._before[id(tensor)] = tensor.detach().clone()
        if "random" not in self._kept:
            self._kept["random"] = _random_states()
            self._kept["autocast"] = _autocast()

    def _called(self, module: nn.Module, args: Any, output: Any) -> None:
        self._depth -= 1
        tensors = [tensor for _, tensor in tensors_in(output)]
        self._bytes += sum(tensor.nbytes for tensor in tensors)
        if torch.is_grad_enabled() and self._bytes <= LARGEST:
            self._calls.append((module, [tensor.detach().clone() for tensor in tensors]))

    def on_forward(self, event: Forward) -> None:
        if not (self._handles and event.gradients) or any(event.model is each for each in self._models):
            return
        first, kept = not self._models, self._kept
        self._models.append(event.model)
        tensors = self._recorder.tensors()
        kept["weights"] = {name: self._before[id(each)] for name, each in tensors.items() if id(each) in self._before}
        called = {id(module) for model in self._models for module in model.modules()}
        kept["modules"] = {name: _own_repr(module) for name, module in self._modules() if id(module) in called}
        if not first:
            return
        own = {id(tensor) for tensor in named_tensors([event.model]).values()}
        kept["model"] = [name for name, each in tensors.items() if id(each) in own]
        kept["training"] = event.model.training
        kept["kernels"] = {**_kernels(event.model), "autocast": kept.pop("autocast", "none")}
        kept["fingerprint"] = fingerprint(_device(event.model).type)
        kept["args"], kept["kwargs"] = _plain(list(event.args)), _plain(dict(event.kwargs))
        if self._keep.given is not None:
            kept["given"] = self._with_given(event.model, torch.load(self._keep.given, weights_only=True))

    def _with_given(self, model: nn.Module, other: Mapping[str, Any]) -> Calls | None:
        """What a copy of the model's modules gives with the other start's rows, weights and random numbers; None where
        there is no copy, or it cannot be called with them."""
        own = named_tensors([model])
        theirs = {name: other["weights"][name] for name in other["model"]}
        names = matched(theirs, own)
        if names is None or other["args"] is None or other["kwargs"] is None:
            return None
        weights = {name: theirs[named].to(own[name]) for name, named in names.items()}
        if any(weights[name].shape != own[name].shape for name in own):
            return None
        before, self._calls = self._calls, []
        with self.monitor.suspended, unchanged_random_state():
            _set_random_states(other["random"])
            try:
                twin = Twin(model, as_it_trains=True).model
                torch.func.functional_call(twin, weights, tuple(other["args"]), other["kwargs"])
                copied = dict(zip(twin.modules(), model.modules(), strict=True))
                return self._named([(copied.get(module, module), tensors) for module, tensors in self._calls])
            except Exception:  # noqa: BLE001 - a model that has no copy, or takes other inputs than the other start's
                return None
            finally:
                self._calls = before

    def _modules(self) -> Iterator[tuple[str, nn.Module]]:
        for before, model in named_models(self._recorder.models):
            for name, module in model.named_modules(remove_duplicate=False):
                yield before + name, module

    def _named(self, calls: list[tuple[nn.Module, list[torch.Tensor]]]) -> Calls:
        names = {id(module): name for name, module in reversed(list(self._modules()))}
        return [(names.get(id(each), ""), type(each).__name__, tensors) for each, tensors in calls]

    def _gradients(self, scale: float = 1.0) -> dict[str, torch.Tensor]:
        """Gradients of all that is trained, also of what is not called in this update: two models may take turns."""
        tensors = self._recorder.tensors().items()
        return {name: each.grad.detach() / scale for name, each in tensors if each.grad is not None}

    def on_backward(self, event: Backward) -> None:
        if self._handles and self._models:
            self._end()
            self._kept["calls"] = self._named(self._calls)
            before, now = self._kept["random"], _random_states()
            self._kept["drawn"] = [name for name in now if now[name] != before[name]]
            named = {id(module) for _, module in self._modules()}
            outside = [module for module, _ in reversed(self._calls) if id(module) not in named]
            self._kept["beside"] = {type(module).__name__: _own_repr(module) for module in outside}
        if self._looks and "gradients" not in self._kept:  # later ones are a closure's, within the step
            self._kept["gradients of backward"] = self._gradients(event.scale)
            self._kept["losses"] = [*self._kept.get("losses", []), event.root.detach().clone() / event.scale]

    @property
    def _looks(self) -> bool:
        """Whether the update is the one that is kept."""
        return bool(self._models) and "after" not in self._kept

    def on_step_begins(self, event: StepBegins) -> None:
        if self._looks:
            self._kept["gradients"] = self._gradients()

    def on_step(self, event: Step) -> None:
        if self._models and not self._handles and self._recording.updates == self._keep.update:
            tensors = self._recorder.tensors().items()
            self._kept["after"] = {name: tensor.detach().clone() for name, tensor in tensors}
            unfinished = Path(f"{self._keep.file}.unfinished")
            torch.save(self._kept, unfinished)
            os.replace(unfinished, self._keep.file)
        elif not (self._models or self._handles) and self._recording.updates == self._keep.update - 1:
            self._begin()


def _random_states() -> dict[str, Any]:
    """States of the process's random generators, as torch loads them with ``weights_only``."""
    numpy: dict[str, Any] = np.random.get_state(legacy=False)
    version, numbers, following = random.getstate()
    return {
        "torch": torch.get_rng_state().tolist(),
        "NumPy": {**numpy, "state": {**numpy["state"], "key": numpy["state"]["key"].tolist()}},
        "Python": [version, list(numbers), following],
        "CUDA": [each.tolist() for each in torch.cuda.get_rng_state_all()] if torch.cuda.is_available() else [],
    }


def _set_random_states(states: Mapping[str, Any]) -> None:
    torch.set_rng_state(torch.tensor(states["torch"], dtype=torch.uint8, device="cpu"))
    np.random.set_state(states["NumPy"])
    version, numbers, following = states["Python"]
    random.setstate((version, tuple(numbers), following))
    if torch.cuda.is_available() and len(states["CUDA"]) == torch.cuda.device_count():
        torch.cuda.set_rng_state_all([torch.tensor(each, dtype=torch.uint8, device="cpu") for each in states["CUDA"]])


def _own_repr(module: nn.Module) -> str:
    """Class and settings of a module, without the modules inside it."""
    return f"{type(module).__name__}({module.extra_repr()})"


def _device(model: nn.Module) -> torch.device:
    return next(model.parameters(), torch.empty(0, device="cpu")).device


def _kernels(model: nn.Module) -> dict[str, str]:
    """What chooses how the same thing is computed."""
    config = getattr(model, "config", None)
    return {
        "device": str(_device(model)),
        "matrix products in float32": torch.get_float32_matmul_precision(),
        "deterministic algorithms": str(torch.are_deterministic_algorithms_enabled()),
        "attention": str(getattr(config, "_attn_implementation", None) or "none"),
    }


def _autocast() -> str:
    """The type that autocast computes in."""
    for device in ("cuda", "cpu"):
        if torch.is_autocast_enabled(device):
            return str(torch.get_autocast_dtype(device))
    return "none"


def _plain(value: Any) -> Any:
    """Value as torch loads it again with ``weights_only``; None where something is in it that torch does not load."""
    if torch.is_tensor(value):
        return value.detach().clone() if is_dense(value) else None
    if isinstance(value, Mapping):
        found = {str(name): _plain(each) for name, each in value.items()}
        return None if any(each is None and value[name] is not None for name, each in found.items()) else found
    if isinstance(value, (list, tuple)):
        listed = [_plain(each) for each in value]
        return None if any(new is None and old is not None for new, old in zip(listed, value, strict=True)) else listed
    return value if isinstance(value, (bool, int, float, str, type(None))) else None
