"""Taken rows: which rows of which tensor a script's own batches are, by the indices and slices that it took them by."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch.utils.weak import WeakIdKeyDictionary

from harness.watch.check import Fact
from harness.watch.events import Forward, Taken

if TYPE_CHECKING:
    from harness.watch.monitor import Monitor

HELD_OUT = re.compile(r"(^|_)(test|val|valid|validation|dev|heldout|holdout|held_out)(_|$|\d)")
"""Names of what is not to be trained on."""

FRAMES = 4
"""Of the user's functions, in whose variables a name is looked for. A guess."""


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of a tensor."""

    source: int
    """The number of the tensor that they were first taken from."""
    of: int
    """How many rows that has."""
    numbers: torch.Tensor
    by: torch.Tensor | None = None
    """The index or the mask that they were taken by; None for a slice."""


class TakenRows(Fact):
    """Where the rows of a tensor come from, as long as it lives."""

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self._taken: Any = WeakIdKeyDictionary()
        """Of each tensor that rows were taken into, and that lives."""
        self._sources: Any = WeakIdKeyDictionary()
        """A number for each tensor that rows were taken from."""
        self._last = 0

    def on_taken(self, event: Taken) -> None:
        numbers = event.index.detach()
        numbers = (numbers.nonzero().flatten() if numbers.dtype is torch.bool else numbers).cpu()
        numbers = torch.where(numbers < 0, numbers + len(event.source), numbers)
        rows = self.of(event.source)
        if rows is not None:
            self._taken[event.value] = Rows(rows.source, rows.of, rows.numbers[numbers], event.index)
        else:
            self._taken[event.value] = Rows(self._number(event.source), len(event.source), numbers, event.index)

    def of(self, tensor: torch.Tensor) -> Rows | None:
        """Which rows it has of the tensor that its rows were first taken from; None if they were not taken."""
        rows: Rows | None = self._taken.get(tensor)
        whole = tensor._base
        if rows is not None or whole is None or not tensor.dim() or not tensor.numel():
            return rows
        if not whole.dim() or not whole.is_contiguous() or tensor.numel() * len(whole) != whole.numel() * len(tensor):
            return None  # no whole rows
        first = int(tensor.storage_offset() - whole.storage_offset()) * len(whole) // whole.numel()
        if first + len(tensor) > len(whole):
            return None
        numbers = torch.arange(first, first + len(tensor))
        rows = self._taken.get(whole)
        if rows is not None:
            return Rows(rows.source, rows.of, rows.numbers[numbers], rows.by)
        return Rows(self._number(whole), len(whole), numbers)

    def _number(self, source: torch.Tensor) -> int:
        if source not in self._sources:
            self._last += 1
            self._sources[source] = self._last
        number: int = self._sources[source]
        return number

    def is_of(self, rows: Rows, source: torch.Tensor) -> bool:
        """Whether they were taken from that tensor."""
        return bool(self._sources.get(source) == rows.source)

    def given(self, forward: Forward) -> list[tuple[torch.Tensor, Rows]]:
        """What a model was given, with its rows."""
        found = [(tensor, self.of(tensor)) for tensor in forward.tensors.values() if tensor.dim()]
        return [(tensor, rows) for tensor, rows in found if rows is not None]

    def held_out(self, *tensors: torch.Tensor | None) -> str | None:
        """What the script calls one of these, where the name says that it is held out."""
        known = [each for each in tensors if each is not None]
        for variables in self.monitor.locator.variables(FRAMES):
            for name, value in variables.items():
                if HELD_OUT.search(name) and any(value is each for each in known):
                    return name
                for key, each in list(getattr(value, "__dict__", {}).items()):
                    if HELD_OUT.search(key) and any(each is one for one in known):
                        return f"{name}.{key}"
        return None
