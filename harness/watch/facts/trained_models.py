"""Models: which were trained, and what those that came from a checkpoint were when they were loaded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

import torch
from torch import nn

from harness.torch_objects import real, share_parameters, spread_over
from harness.watch.bounded import FirstByKey
from harness.watch.events import Backward, End, Fact, Forward, FromPretrained, Load
from harness.watch.host import brought
from harness.watch.recogniser import Recogniser

LAST_TENSORS = 4
"""Tensors at the end of a model, its head's, whose values tell whether it was trained: any update changes them."""


MOST_VALUES = 1024
"""Values of a matrix that tell whose it is: by reasoning, two matrices agree in one or two only by chance."""

MAX_WRITES = 4
"""Times that a tensor is written to while it is initialised. Torch does it once, and a model's own scheme once or twice
more. A moving average writes twice in each update."""

DEVIATIONS = 5
"""Standard deviations of the cosine of two independent tensors, up to which they may be independent."""


class TrainedModels(Recogniser):
    """The models that a backward pass went through."""

    def begin(self) -> None:
        self.all: WeakSet[nn.Module] = WeakSet()
        """Models that are alive."""
        self.names: set[str] = set()
        """The classes of all of them, and of the pretrained models within them."""

    def on_backward(self, event: Backward) -> None:
        for model in reached(event):
            if model not in self.all:
                self.all.add(model)
                self.names |= {type(each).__name__ for each in (model, *pretrained_in(model))}


@dataclass(frozen=True)
class Called:
    """A model that was called since the latest backward pass."""

    trained: bool
    untrained: str | None
    """What its weights are, where it has never been trained though others of its kind were."""
    of_trained_kind: bool
    where: str | None


class CalledModels(Recogniser):
    """Whether the models that are called when the training is over are those that were trained."""

    def begin(self) -> None:
        self.since: dict[int, Called] = {}
        """Since the latest backward pass, by number."""
        self._trained: set[int] = set()
        self._alive: WeakSet[nn.Module] = WeakSet()
        """Trained models that are alive."""
        self._kinds: set[Kind] = set()
        """Kinds of the models that were trained."""
        self._began = FirstByKey[Kind, list[torch.Tensor]]()
        """The beginnings of a few matrices of the first model of each kind, when its training began."""
        self._loaded: WeakSet[nn.Module] = WeakSet()

    def on_from_pretrained(self, event: FromPretrained) -> None:
        self._loaded.update(event.model.modules())

    def on_load(self, event: Load) -> None:
        if isinstance(event.into, nn.Module) and event.state:
            self._loaded.update(event.into.modules())

    def on_forward(self, event: Forward) -> None:
        number = self.monitor.number_of(event.model)
        if number in self.since:
            return
        kind = None if number in self._trained else _kind(event.model)
        if kind is not None and event.gradients and kind not in self._began and self._began.takes(kind):
            self._began[kind] = _beginnings(event.model)
        trained = kind is None or any(share_parameters(event.model, other) for other in self._alive)
        untrained = None if trained or kind not in self._kinds else self._origin(event.model, kind)
        self.since[number] = Called(trained, untrained, kind is None or kind in self._kinds, event.where)

    def on_backward(self, event: Backward) -> None:
        self.since.clear()
        for model in reached(event):
            number = self.monitor.number_of(model)
            if number not in self._trained:
                self._trained.add(number)
                self._alive.add(model)
                self._kinds.add(_kind(model))

    def _origin(self, model: nn.Module, kind: Kind) -> str | None:
        """What the weights of a model are that was not trained; None where they may come from the training."""
        began = self._began.get(kind)
        if any(p.is_meta for p in model.parameters()):
            return None
        if began is None or not self.monitor.stepped or any(module in self._loaded for module in model.modules()):
            return None
        mine, others = _beginnings(model), [_beginnings(each) for each in self._alive if _kind(each) == kind]
        if any(all_equal(mine, other) for other in others):
            return None
        if all_equal(mine, began):
            return "it has the weights that the training began with"
        written = [p._version for p in spread_over(model)]
        fresh = all(1 <= times <= MAX_WRITES for times in written)
        known = [pair for other in (began, *others) for pair in zip(mine, other, strict=True)]
        if mine and fresh and not any(are_alike(*pair) for pair in known):
            return "it has new weights, and no state was loaded into it"
        return None


Kind = tuple[str, tuple[torch.Size, ...]]


def _kind(model: nn.Module) -> Kind:
    """What a model has in common with its copies."""
    return type(model).__name__, tuple(p.shape for p in model.parameters())


def _beginnings(model: nn.Module) -> list[torch.Tensor]:
    first = [real(p).flatten()[:MOST_VALUES] for p in spread_over(model) if not p.is_meta]
    return [each.to(torch.float32) for each in brought(first)]


def are_alike(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two tensors point the same way, as no two do that were drawn independently."""
    cosine = torch.nn.functional.cosine_similarity(one.flatten(), other.flatten(), dim=0)
    return bool(abs(float(cosine)) > DEVIATIONS / one.numel() ** 0.5)


class ModelsFromCheckpoints(Recogniser):
    """A few tensors of each model that was loaded from a checkpoint, as they were then."""

    def begin(self) -> None:
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


def is_state_of(state: Any, model: nn.Module) -> bool:
    """Whether a state, or a module that is saved whole, is of this very model and no copy of it."""
    if isinstance(state, nn.Module):
        return state is model
    pointers = {p.data_ptr() for p in model.parameters()}
    return any(torch.is_tensor(value) and value.numel() and value.data_ptr() in pointers for value in state.values())


def all_equal(ones: Sequence[torch.Tensor], others: Sequence[torch.Tensor]) -> bool:
    """Whether tensors are the same, value for value, wherever they are and in whatever type."""
    return len(ones) == len(others) and all(
        one.shape == other.shape and torch.equal(one.to(other), other) for one, other in zip(ones, others, strict=True)
    )


def pretrained_in(model: nn.Module) -> list[nn.Module]:
    """The pretrained models within a model, itself first."""
    return [module for module in model.modules() if hasattr(module, "base_model_prefix")]


class CheckpointEvaluated(Fact):
    """A run is over in which a model was loaded after updates and evaluated with the weights that they began with.

    ``where`` loaded it.
    """


class CalledAfterTraining(Fact):
    """A run is over after whose training models of the kind that was trained were called. ``where``: the first call."""

    needs = "model that is called after the training"
    untrained: str | None = None
    """What the weights of the first are, where none of them was ever trained."""


class EvaluatedModels(Recogniser):
    makes = (CheckpointEvaluated, CalledAfterTraining)

    def begin(self) -> None:
        self._loaded, self._called = self.fact(ModelsFromCheckpoints), self.fact(CalledModels)
        self._originals: list[list[torch.Tensor]] = []
        """A few tensors of each checkpoint that the script began with."""
        self._reloaded: WeakKeyDictionary[nn.Module, str | None] = WeakKeyDictionary()
        """Models with those very tensors that were loaded when updates had been made, and where."""
        self._untrained: list[str | None] = []
        """Where the first of those was loaded that were evaluated since the latest training; empty if none was."""

    def on_from_pretrained(self, event: FromPretrained) -> None:
        values = [value for _, value in self._loaded.spread[event.model]]
        if not self.monitor.stepped:
            self._originals.append(values)
        elif any(all_equal(values, first) for first in self._originals):
            self._reloaded[event.model] = event.where

    def on_load(self, event: Load) -> None:
        if isinstance(event.into, nn.Module):
            for module in event.into.modules() if self._reloaded else ():  # an adapter's state goes into what is around
                self._reloaded.pop(module, None)

    def on_forward(self, event: Forward) -> None:
        if event.model in self._reloaded and not event.gradients and event.batch is not None and not self._untrained:
            self._untrained.append(self._reloaded[event.model])

    def on_backward(self, event: Backward) -> None:
        for model in reached(event):
            self._reloaded.pop(model, None)
        if event.batch is not None:
            self._untrained.clear()  # a comparison before another training

    def on_end(self, event: End) -> None:
        for where in self._untrained:
            self.tell(CheckpointEvaluated(where=where))
        called = [each for each in self._called.since.values() if each.of_trained_kind] if event.at.complete else []
        if called:
            untrained = called[0].untrained if all(each.untrained for each in called) else None
            self.tell(CalledAfterTraining(untrained=untrained, where=called[0].where))
