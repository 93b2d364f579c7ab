"""Rows by hand: which tensor a batch is a slice of, and what the script calls test, validation or held out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Any

import torch
from torch.utils.weak import WeakIdKeyDictionary

from harness.watch.recogniser import Recogniser

HELD_OUT = re.compile(r"(^|_)(test|val|valid|validation|dev|heldout|holdout|held_out)(_|$|\d)", re.IGNORECASE)
"""Names of what is not to be trained on."""

MIN_ROWS = 8
"""Rows, of a batch or an evaluation, that are worth a look where they are known by their content."""

FRAMES, DEPTH, MOST_VARIABLES = 4, 2, 2000
"""Number of the user's functions in whose variables a name is looked for, how deep in their attributes, and how many
variables."""


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
    """Where the rows of batches that a script makes itself come from."""

    def begin(self) -> None:
        self._sources: Any = WeakIdKeyDictionary()
        self._last = 0

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
