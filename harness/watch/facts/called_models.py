"""Models that are called: each once, what they are called on a page, and which of their calls are differentiated."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar
from weakref import WeakSet

from torch import nn

from harness.watch.bus import Recogniser
from harness.watch.events import Fact, Forward

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


class Waiting(dict[int, Told]):
    """What was told of forwards that can be differentiated, by their number, until it is known whether they are.

    What a generator has made is differentiated after the backward pass of the discriminator that was given it, too.
    """

    def reached(self, numbers: Iterable[int]) -> Iterator[Told]:
        """Of the forwards that a backward pass went through for the first time."""
        yield from (self.pop(number) for number in sorted(numbers) if number in self)

    def given_up(self, most: int = MOST_WAITING) -> Iterator[Told]:
        """Of the forwards before the latest ones: nothing goes through them any more."""
        yield from (self.pop(number) for number in sorted(self)[: max(0, len(self) - most)])


class ModelNames(Recogniser):
    """What models are called on the page: by their class, the second of one class with a number."""

    def begin(self) -> None:
        self._names = Names()

    def of(self, model: nn.Module) -> str:
        return self._names.of(self.monitor.number_of(model), type(model).__name__)


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
