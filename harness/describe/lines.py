"""A line of a description: a sentence for a person, and the same as facts for a baseline."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from torch import nn

from harness.findings import few
from harness.watch.bus import Listener, Recogniser
from harness.watch.monitor import Monitor

Told = TypeVar("Told")

BITS = "_bits"
"""How the key of a fact ends that is the same on the same kind of machine alone: it comes from bits of real numbers."""

FIRST = 8
"""Updates whose loss and gradients are kept as numbers."""

MOST_WAITING = 64
"""Forwards that may still be differentiated: more than any window of micro-batches has, or any loss has terms."""

MOST_NAMES = 6
"""Names of tensors that are kept as they are."""

MOST_SHOWN = 4
"""Names, updates or values of a list that a line shows."""


@dataclass(frozen=True)
class Line:
    """One thing that a run did."""

    section: str
    text: str
    """Empty where only a baseline keeps it."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """By key, what JSON can hold: without times and paths of a machine, so that the same run has the same facts."""
    where: str | None = None
    """FILE:LINE of the user's line."""


class Section(Listener):
    """Gathers what a run did of one kind. It keeps no tensor of the script's, and of an update numbers at most."""

    def __init__(self, monitor: Monitor) -> None:
        self.monitor = monitor
        self.begin()

    def begin(self) -> None:
        """Make what it keeps from one event to the next."""

    def lines(self) -> Iterable[Line]:
        """What it came to, at the end of the run."""
        raise NotImplementedError

    def numbers(self) -> dict[str, list[float]]:
        """What it measured, by key: what another machine computes within rounding."""
        return {}


def line(section: str, text: str, facts: Mapping[str, Any], where: str | None = None, *, of: str = "") -> Line:
    """A line whose facts have the section, and what they are of, before their keys."""
    start = ".".join(filter(None, (section, of)))
    return Line(section, text, {f"{start}.{key}": value for key, value in facts.items()}, where)


def count(number: int, what: str) -> str:
    """ "1 row", "2 rows", "2 batches", "2 classes"."""
    plural = f"{what[:-1]}ies" if what.endswith("ry") else what + ("es" if what.endswith(("s", "ch", "x")) else "s")
    return f"{number:,} {what if number == 1 else plural}"


def number(value: float) -> str:
    """Four significant digits, as they are read most easily."""
    return f"{value:.4g}"


def listed(values: Iterable[Any], most: int = MOST_SHOWN) -> str:
    """The first values with commas between them, and how many more there are."""
    return few([str(each) for each in values], most)


def spread(values: Sequence[int]) -> str:
    """ "8", or "4 to 8" of values that differ."""
    low, high = min(values), max(values)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def patterns(names: Iterable[str]) -> list[str]:
    """Names of tensors; of many, those together that differ in their numbers only: "layer.*.weight"."""
    names = sorted(set(names))
    if len(names) <= MOST_NAMES:
        return names
    return sorted({re.sub(r"(?<=[.])\d+(?=[.]|$)|^\d+(?=[.])", "*", name) for name in names})


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
