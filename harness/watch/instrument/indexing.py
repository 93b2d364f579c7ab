"""Rows that a script takes out of tensors by indices, masks and slices, and the permutations that it draws."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import torch

from harness.torch_objects import is_traced
from harness.watch.events import Drawn, Taken
from harness.watch.instrument.patches import Original, Patches
from harness.watch.monitor import Threads

MIN_ROWS = 8
"""Rows that an index must have: fewer are somebody's look at a few. A guess."""


def install(threads: Threads, patches: Patches) -> None:
    original = torch.Tensor.__getitem__

    @functools.wraps(original)
    def item(source: torch.Tensor, index: Any) -> Any:
        value = original(source, index)
        if type(index) is torch.Tensor and index.dim() == 1 and len(index) >= MIN_ROWS and not is_traced():
            by_rows = index.dtype is torch.int64 or (index.dtype is torch.bool and len(index) == len(source))
            if by_rows and (monitor := threads.current()) and not monitor.in_backward:
                monitor.emit(Taken(source, index, value))
        return value

    def permuted(original: Original, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        value = original(*args, **kwargs)
        if torch.is_tensor(value) and len(value) >= MIN_ROWS and (monitor := threads.current()):
            monitor.emit(Drawn(value, monitor.locator.where()))
        return value

    patches.put(torch.Tensor, "__getitem__", item)
    patches.wrap(torch, "randperm", permuted)
