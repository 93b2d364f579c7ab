"""Models that are called: each once, what they are called on a page, and which of their calls are differentiated."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar
from weakref import WeakKeyDictionary, WeakSet

import torch
from torch import nn

from harness.torch_objects import held_by
from harness.watch.events import Fact, Forward, Step
from harness.watch.recogniser import Recogniser

Told = TypeVar("Told")

MOST_WAITING = 64
"""Forwards that may still be differentiated: more than any window of micro-batches has, or any loss has terms."""


class ModelCalled(Fact):
    """The first call of a model. ``where`` is the call."""

    needs = "model that is called"
    in_windows = "all"
    model: nn.Module


class ModelsCalled(Recogniser):
    makes = (ModelCalled,)

    def begin(self) -> None:
        self._seen: WeakSet[nn.Module] = WeakSet()

    def on_forward(self, event: Forward) -> None:
        if event.model not in self._seen:
            self._seen.add(event.model)
            self.tell(ModelCalled(model=event.model, where=event.where))


class PendingForwards(dict[int, Told]):
    """What was told of forwards that can be differentiated, by their number, until it is known whether they are.

    What a generator has made is differentiated after the backward pass of the discriminator that was given it, too.
    """

    def reached(self, numbers: Iterable[int]) -> Iterator[Told]:
        """What was told of the forwards that a backward pass went through for the first time."""
        yield from (self.pop(number) for number in sorted(numbers) if number in self)

    def given_up(self, most: int = MOST_WAITING) -> Iterator[Told]:
        """What was told of forwards before the latest ones: no backward pass goes through them any more."""
        yield from (self.pop(number) for number in sorted(self)[: max(0, len(self) - most)])


def is_one_row(event: Forward, given: torch.Tensor) -> bool:
    """Whether a vector is the numbers of one row, as an agent gives them, and not one number of each of many rows.

    A model of rows says as much of each as there are rows; a layer that takes as many numbers takes a row.
    """
    if given.dim() != 1 or not given.is_floating_point():
        return False
    layers = (each for each in event.model.modules() if isinstance(each, nn.Linear))
    if (first := next(layers, None)) is not None and 1 < first.in_features == len(given):
        return True
    outputs = [each for each in event.outputs if each.dim()]
    return bool(outputs) and all(len(each) != len(given) for each in outputs)


class OptimizedModels(Recogniser):
    """Models that have parameters in an optimizer that steps: gradients may reach others, which nobody uses."""

    def begin(self) -> None:
        self._numbers: set[int] = set()
        self._steps: WeakKeyDictionary[Any, int] = WeakKeyDictionary()

    def on_step(self, event: Step) -> None:
        steps = self._steps[event.optimizer] = self._steps.get(event.optimizer, 0) + 1
        others = [each for each in self.monitor.models if self.monitor.number_of(each) not in self._numbers]
        if steps > MOST_WAITING or not others:
            return
        held = {id(each) for each in held_by(event.optimizer)}
        found = (each for each in others if any(id(parameter) in held for parameter in each.parameters()))
        self._numbers |= {self.monitor.number_of(each) for each in found}

    def has(self, number: int) -> bool:
        """Whether the model of this number is one; of a loop without an optimizer nobody knows."""
        return number in self._numbers or not self._steps


class ModelNames(Recogniser):
    """What models are called on the page: by their class, the second of one class with a number."""

    def begin(self) -> None:
        self._names = Names()

    def of(self, model: nn.Module) -> str:
        return self.of_number(self.monitor.number_of(model), type(model).__name__)

    def of_number(self, number: int, kind: str) -> str:
        """The name of the model that has this number, and is of this class."""
        return self._names.of(number, kind)


class Names:
    """Names of things by what they are called: the second of one name gets a number."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._names: dict[Any, str] = {}

    def of(self, key: Any, name: str) -> str:
        """The name of the thing that ``key`` tells from others."""
        if key not in self._names:
            self._counts[name] += 1
            self._names[key] = name if self._counts[name] == 1 else f"{name}#{self._counts[name]}"
        return self._names[key]
