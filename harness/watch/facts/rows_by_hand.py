"""Rows by hand: which rows a model was trained on in batches that come from no DataLoader."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Any

import torch
from torch.utils.weak import WeakIdKeyDictionary

from harness.torch_objects import real
from harness.watch.bounded import LatestByKey
from harness.watch.bus import Recogniser
from harness.watch.events import BackwardBegins, Forward
from harness.watch.facts.row_dimension import largest
from harness.watch.host import on_host

MOST_VALUES = 512
"""Values of one row that tell it from others."""

MOST_ROWS = 20_000
"""Rows of one model that are remembered. By reasoning, what is worth its time: an environment gives new ones for
ever."""

KNOWN = 16
"""Batches in a row without a new row, after which all are known."""

HELD_OUT = re.compile(r"(^|_)(test|val|valid|validation|dev|heldout|holdout|held_out)(_|$|\d)", re.IGNORECASE)
"""Names of what is not to be trained on."""

FRAMES, DEPTH, MOST_VARIABLES = 4, 2, 2000
"""Of the user's functions in whose variables a name is looked for, how deep in their attributes, and how many."""


@dataclass(frozen=True)
class Slice:
    """Rows of a tensor that lie beside one another."""

    source: int
    """The number of that tensor."""
    of: int
    """How many rows it has."""
    first: int
    rows: int


class RowsByHand(Recogniser):
    """The rows of batches that a script makes itself, by their content."""

    def begin(self) -> None:
        self.trained = LatestByKey[int, set[int]]()
        """By the model's number: the keys of the rows that it was trained on before this backward pass."""
        self.given: dict[int, list[int]] = {}
        """By the model's number: the keys of the rows of the backward pass at hand."""
        self.alike: set[int] = set()
        """Numbers of models that were given a row twice in a batch: rows cannot be told apart by their content."""
        self._known: Counter[int] = Counter()
        """Batches in a row that brought no new one, by the model's number."""
        self._sources: Any = WeakIdKeyDictionary()
        self._last = 0

    def on_backward_begins(self, event: BackwardBegins) -> None:
        for number, keys in self.given.items():
            trained = self.trained.setdefault(number, set())
            before = len(trained)
            if before < MOST_ROWS:
                trained.update(keys)
            self._known[number] = self._known[number] + 1 if len(trained) == before else 0
        self.given = {}
        if event.batch is not None or event.inside_step:
            return
        for forward in event.forwards:
            number = self.monitor.number_of(forward.model)
            over = len(self.trained.get(number, ())) >= MOST_ROWS or self._known[number] >= KNOWN
            if not forward.gradients or (over and not self.monitor.is_sampled()):
                continue
            rows = self.keys(forward)
            if rows is not None:
                self.given[number] = rows
                if len(set(rows)) < len(rows):
                    self.alike.add(number)

    def keys(self, forward: Forward) -> list[int] | None:
        """A number for each row of the largest tensor that a model was given; None where that has no rows."""
        given = largest(forward)
        return None if given is None or given.dim() < 2 or given.is_meta else row_keys(given)

    def slice_of(self, tensor: torch.Tensor) -> Slice | None:
        """Which rows of which tensor it is; None where it is no slice of whole rows."""
        whole = tensor._base
        if whole is None or not tensor.dim() or not tensor.numel() or not whole.dim() or not whole.is_contiguous():
            return None
        if tensor.numel() * len(whole) != whole.numel() * len(tensor):
            return None
        first = int(tensor.storage_offset() - whole.storage_offset()) * len(whole) // whole.numel()
        if whole not in self._sources:
            self._last += 1
            self._sources[whole] = self._last
        return (
            Slice(self._sources[whole], len(whole), first, len(tensor)) if first + len(tensor) <= len(whole) else None
        )

    def held_out(self) -> Iterator[tuple[str, Any]]:
        """What the script calls test, validation or held out, with its value, as far as it can be seen from here."""
        seen = 0
        for variables in self.monitor.locator.variables(FRAMES):
            waiting = [(name, value, 0) for name, value in variables.items()]
            while waiting and seen < MOST_VARIABLES:
                name, value, depth = waiting.pop()
                seen += 1
                if _is_held_out(name.rpartition(".")[2]):
                    yield name, value
                inner = value if isinstance(value, dict) else getattr(value, "__dict__", None)
                if depth < DEPTH and isinstance(inner, dict) and self._may_hold_rows(value):
                    waiting += [
                        (f"{name}.{key}", each, depth + 1) for key, each in inner.items() if isinstance(key, str)
                    ]

    def _may_hold_rows(self, value: Any) -> bool:
        """Whether names of rows may be within: a library's module has thousands of others, and is looked at for each
        update."""
        if isinstance(value, ModuleType):
            file = getattr(value, "__file__", None)  # modules that are built in have none
            return file is not None and self.monitor.locator.is_users_file(file)
        return not isinstance(value, (type, torch.nn.Module))


@cache
def _is_held_out(name: str) -> bool:
    return HELD_OUT.search(name) is not None


def row_keys(given: torch.Tensor) -> list[int]:
    """A number for each row: a sum of its bits with weights, as whole numbers, which no order of summing changes."""
    values = real(on_host(given)).flatten(1)[:, :MOST_VALUES].cpu()
    if values.dtype in (torch.float16, torch.bfloat16):
        values = values.float()
    bits = {torch.float32: torch.int32, torch.float64: torch.int64}.get(values.dtype)
    whole = (values.contiguous().view(bits) if bits is not None else values).long()
    return (whole * _weights(whole.shape[1])).sum(1).tolist()


def _weights(columns: int) -> torch.Tensor:
    at = torch.arange(1, columns + 1, device="cpu")
    return (at * 0x9E3779B97F4A7C1) ^ (at << 17)
