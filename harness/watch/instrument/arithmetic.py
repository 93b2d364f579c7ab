"""Subtractions and comparisons of tensors, which scripts make by hand for losses and accuracies."""

from __future__ import annotations

import functools
from typing import Any

import torch

from harness.torch_objects import is_traced
from harness.watch.events import Pairing
from harness.watch.instrument.patches import Original, Patches
from harness.watch.monitor import Threads

OPERATIONS = {"__sub__": "-", "sub": "-", "__eq__": "==", "eq": "==", "__ne__": "!=", "ne": "!="}


def install(threads: Threads, patches: Patches) -> None:
    for name, sign in OPERATIONS.items():
        patches.put(torch.Tensor, name, _watched(threads, sign, getattr(torch.Tensor, name)))


def _watched(threads: Threads, sign: str, original: Original) -> Original:
    @functools.wraps(original)
    def operation(one: torch.Tensor, other: Any, *args: Any, **kwargs: Any) -> Any:
        if is_traced():  # to ask for a size is recorded, too
            return original(one, other, *args, **kwargs)
        value = original(one, other, *args, **kwargs)
        if type(other) is torch.Tensor and type(one) is torch.Tensor:
            if value.numel() > one.numel() > 1 < other.numel() < value.numel():
                if (monitor := threads.current()) and not monitor.in_backward:
                    monitor.emit(Pairing(sign, one, other, monitor.forwards, monitor.locator.where()))
            elif sign != "-" and (monitor := threads.current()):
                monitor.score()
        return value

    return operation
