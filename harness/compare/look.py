"""What one update is made of, tensors and all: kept by one start of a script, read beside what another has kept.

The file is one that torch loads with ``weights_only``: tensors, numbers, words, and lists and dicts of them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

from harness.resume.orders import Keep
from harness.resume.recorder import Onlooker, Recording
from harness.torch_objects import is_dense, unchanged_random_state
from harness.watch.events import Backward, Forward, Step, StepBegins
from harness.watch.facts.batches import tensors_in
from harness.watch.monitor import Monitor

LARGEST = 2**31
"""Bytes of modules' outputs that are kept of an update; of what comes after, nothing is."""

PACKAGES = ("torch", "transformers", "accelerate", "datasets", "tokenizers", "numpy")

Calls = list[tuple[str, str, list[torch.Tensor]]]
"""Of each module that was called: its name in the model, its class, what it gave."""


class Look(Onlooker):
    """Keeps what the first forward pass of one update computes, module by module, and what the update does.

    With what another start has kept it also calls the model of this one with the other's rows, weights and random
    numbers, so that what is computed can be told from what it is computed from.
    """

    id = "compare::look"

    def __init__(self, monitor: Monitor, recording: Recording, keep: Keep) -> None:
        self.monitor, self._recording, self._keep = monitor, recording, keep
        self._model: nn.Module | None = None
        self._calls: list[tuple[nn.Module, list[torch.Tensor]]] = []
        self._bytes = 0
        self._kept: dict[str, Any] = {}
        self._handles: list[Any] = []
        if keep.update == 1:
            self._begin()

    def _begin(self) -> None:
        self._handles = [register_module_forward_pre_hook(self._is_called), register_module_forward_hook(self._called)]

    def _end(self) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def _is_called(self, module: nn.Module, args: Any) -> None:
        if torch.is_grad_enabled() and "random" not in self._kept:
            self._kept["random"] = torch.get_rng_state()
            self._kept["autocast"] = _autocast()

    def _called(self, module: nn.Module, args: Any, output: Any) -> None:
        tensors = [tensor for _, tensor in tensors_in(output)]
        self._bytes += sum(tensor.nbytes for tensor in tensors)
        if torch.is_grad_enabled() and self._bytes <= LARGEST:
            self._calls.append((module, [tensor.detach().clone() for tensor in tensors]))

    def on_forward(self, event: Forward) -> None:
        if not (self._handles and event.gradients):
            return
        self._end()
        self._model = event.model
        kept = self._kept
        kept["calls"] = self._named(self._calls)
        kept["weights"] = self._tensors()
        kept["modules"] = dict(_modules(event.model))
        kept["training"] = event.model.training
        kept["kernels"] = {**_kernels(event.model), "autocast": kept.pop("autocast", "none")}
        kept["environment"] = _environment()
        kept["args"], kept["kwargs"] = _plain(list(event.args)), _plain(dict(event.kwargs))
        if self._keep.given is not None:
            kept["given"] = self._with_given(event.model, torch.load(self._keep.given, weights_only=True))

    def _with_given(self, model: nn.Module, other: Mapping[str, Any]) -> Calls | None:
        """What the model's modules give with the other start's rows, weights and random numbers; None where it cannot
        be called with them."""
        own = {**dict(model.named_parameters()), **dict(model.named_buffers())}
        weights = {name: tensor for name, tensor in other["weights"].items() if name in own}
        if other["args"] is None or other["kwargs"] is None or any(weights[k].shape != own[k].shape for k in weights):
            return None
        weights = {name: tensor.to(own[name]) for name, tensor in weights.items()}
        before, self._calls, self._bytes = self._calls, [], 0
        with self.monitor.suspended(), unchanged_random_state():
            handle = register_module_forward_hook(self._called)
            torch.set_rng_state(other["random"])
            try:
                torch.func.functional_call(model, weights, tuple(other["args"]), other["kwargs"])
                return self._named(self._calls)
            except Exception:  # noqa: BLE001 - a model that takes other inputs than the other start's
                return None
            finally:
                handle.remove()
                self._calls = before

    def _named(self, calls: list[tuple[nn.Module, list[torch.Tensor]]]) -> Calls:
        assert self._model is not None
        names = {id(module): name for name, module in self._model.named_modules()}
        return [(names.get(id(each), ""), type(each).__name__, tensors) for each, tensors in calls]

    def _tensors(self) -> dict[str, torch.Tensor]:
        assert self._model is not None
        named = [*self._model.named_parameters(), *self._model.named_buffers()]
        return {name: tensor.detach().clone() for name, tensor in named}

    def _gradients(self, scale: float = 1.0) -> dict[str, torch.Tensor]:
        assert self._model is not None
        return {name: p.grad.detach() / scale for name, p in self._model.named_parameters() if p.grad is not None}

    def on_backward(self, event: Backward) -> None:
        if self._model is not None and "after" not in self._kept:
            self._kept["gradients of backward"] = self._gradients(event.scale)
            self._kept["losses"] = [*self._kept.get("losses", []), event.root.detach().clone() / event.scale]

    def on_step_begins(self, event: StepBegins) -> None:
        if self._model is not None and "after" not in self._kept:
            self._kept["gradients"] = self._gradients()

    def on_step(self, event: Step) -> None:
        if self._model is not None and "after" not in self._kept:
            self._kept["after"] = self._tensors()
            unfinished = Path(f"{self._keep.file}.unfinished")
            torch.save(self._kept, unfinished)
            os.replace(unfinished, self._keep.file)
        elif self._model is None and self._recording.updates == self._keep.update - 1:
            self._begin()


def _modules(model: nn.Module) -> Iterator[tuple[str, str]]:
    """What each module says of itself, without those inside it."""
    for name, module in model.named_modules(remove_duplicate=False):
        yield name, f"{type(module).__name__}({module.extra_repr()})"


def _kernels(model: nn.Module) -> dict[str, str]:
    """What chooses how the same thing is computed."""
    config = getattr(model, "config", None)
    return {
        "device": str(next(model.parameters(), torch.empty(0)).device),
        "matrix products in float32": torch.get_float32_matmul_precision(),
        "deterministic algorithms": str(torch.are_deterministic_algorithms_enabled()),
        "attention": str(getattr(config, "_attn_implementation", None) or "none"),
    }


def _environment() -> dict[str, str]:
    """What may choose kernels too, and need not."""
    found = {"threads": str(torch.get_num_threads())}
    for name in PACKAGES:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def _autocast() -> str:
    """The type that autocast computes in."""
    for device in ("cuda", "cpu"):
        if torch.is_autocast_enabled(device):
            return str(torch.get_autocast_dtype(device))
    return "none"


def _plain(value: Any) -> Any:
    """As torch loads it again with ``weights_only``; None where something is in it that it does not."""
    if torch.is_tensor(value):
        return value.detach().clone() if is_dense(value) else None
    if isinstance(value, Mapping) or hasattr(value, "items"):
        found = {str(name): _plain(each) for name, each in value.items()}
        return None if any(each is None and value[name] is not None for name, each in found.items()) else found
    if isinstance(value, (list, tuple)):
        listed = [_plain(each) for each in value]
        return None if any(new is None and old is not None for new, old in zip(listed, value, strict=True)) else listed
    return value if isinstance(value, (bool, int, float, str, type(None))) else None
