"""Models: which were trained, and what those that came from a checkpoint were when they were loaded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, WeakSet

import torch
from torch import nn

from harness.torch_objects import spread_over
from harness.watch.check import Fact
from harness.watch.events import Backward, FromPretrained, Load

if TYPE_CHECKING:
    from harness.watch.monitor import Monitor

LAST_TENSORS = 4
"""Tensors at the end of a model, its head's, whose values tell whether it was trained: any update changes them."""


class TrainedModels(Fact):
    """The models that a backward pass went through."""

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.all: WeakSet[nn.Module] = WeakSet()

    def on_backward(self, event: Backward) -> None:
        for model in reached(event):
            self.all.add(model)


class ModelsFromCheckpoints(Fact):
    """A few tensors of each model that was loaded from a checkpoint, as they were then."""

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.last: WeakKeyDictionary[Any, list[torch.Tensor]] = WeakKeyDictionary()
        """Copies of the last few trainable ones."""
        self.spread: WeakKeyDictionary[Any, list[tuple[nn.Parameter, torch.Tensor]]] = WeakKeyDictionary()
        """A few matrices from all over the model, and copies of them; empty once a state was loaded into any module."""

    def on_from_pretrained(self, event: FromPretrained) -> None:
        self.last[event.model] = [p.detach().clone() for p in _last_trainable(event.model)]
        self.spread[event.model] = [(p, p.detach().clone()) for p in spread_over(event.model)]

    def on_load(self, event: Load) -> None:
        if isinstance(event.into, nn.Module) and event.state:
            self.spread.clear()

    def as_loaded(self) -> list[nn.Module]:
        """The models that no update has changed."""
        return [model for model, values in self.last.items() if all_equal(_last_trainable(model), values)]


def reached(event: Backward) -> list[nn.Module]:
    """The models that a backward pass went through."""
    return [forward.model for forward in event.forwards if forward.number in event.reached]


def _last_trainable(model: nn.Module) -> list[nn.Parameter]:
    return [p for p in model.parameters() if p.requires_grad][-LAST_TENSORS:]


def all_equal(ones: Sequence[torch.Tensor], others: Sequence[torch.Tensor]) -> bool:
    """Whether tensors are the same, value for value, wherever they are and in whatever type."""
    return len(ones) == len(others) and all(
        one.shape == other.shape and torch.equal(one.to(other), other) for one, other in zip(ones, others, strict=True)
    )


def pretrained_in(model: nn.Module) -> list[nn.Module]:
    """The pretrained models within a model, itself first."""
    return [module for module in model.modules() if hasattr(module, "base_model_prefix")]
