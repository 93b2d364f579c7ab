"""A line of a description: a sentence for a person, and the same as facts for a baseline."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
import xxhash

from harness.describe.description import Line
from harness.findings import few
from harness.watch.bus import Listener
from harness.watch.monitor import ALWAYS_SAMPLED, Monitor

BITS = "_bits"
"""How the key of a fact ends that is the same on the same kind of machine alone: it comes from bits of real numbers."""

FIRST = ALWAYS_SAMPLED
"""Updates whose loss and gradients are kept as numbers."""

MOST_NAMES = 6
"""Names of tensors that are kept as they are."""

MOST_SHOWN = 4
"""Names, updates or values of a list that a line shows."""


SHAPES, NAMES = "shapes", "names"
"""Facts by which a model or an optimizer is known again when its class or its tensors are called otherwise."""

MOST_SHAPES = 12
"""Shapes of tensors that are kept as they are; of more a digest."""

MOST_IN_ORDER = 64
"""Names of a model's tensors that are kept in their order, or their patterns."""


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
    return sorted(set(map(pattern, names)))


def pattern(name: str) -> str:
    """The name of a tensor without its numbers: "layer.*.weight"."""
    return re.sub(r"(?<=[.])\d+(?=[.]|$)|^\d+(?=[.])", "*", name)


def shapes(tensors: Iterable[torch.Tensor]) -> str:
    """The shapes of tensors in their order: "16x8 16 2x16 2"; of many their number and a digest."""
    each = ["x".join(map(str, tensor.shape)) or "scalar" for tensor in tensors]
    if len(each) <= MOST_SHAPES:
        return " ".join(each)
    return f"{len(each)} tensors, {xxhash.xxh3_64_hexdigest(' '.join(each).encode())}"


def in_order(names: Iterable[str]) -> list[str] | None:
    """Names of tensors in their order, or their patterns, as :func:`patterns` has them; None where these are many."""
    names = list(names)
    if len(names) > MOST_IN_ORDER:
        names = list(dict.fromkeys(map(pattern, names)))
    return names if len(names) <= MOST_IN_ORDER else None
