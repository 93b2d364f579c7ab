"""Subtractions and comparisons of tensors that the script makes by hand, where they pair everything with everything."""

from __future__ import annotations

import functools
from typing import Any

import torch

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
        value = original(one, other, *args, **kwargs)
        if isinstance(other, torch.Tensor) and value.dim() == 2 and value.numel() > one.numel() > 1:
            _tell(threads, sign, one, other, value)
        return value

    return operation


def _tell(threads: Threads, sign: str, one: torch.Tensor, other: torch.Tensor, value: torch.Tensor) -> None:
    monitor = threads.current()
    if monitor is not None and not monitor.in_backward and value.numel() > other.numel() > 1:
        monitor.emit(Pairing(sign, one, other, monitor.forwards, monitor.locator.where()))
