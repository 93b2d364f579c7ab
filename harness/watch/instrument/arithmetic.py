"""Arithmetic of tensors by hand: losses and accuracies by subtractions and comparisons, and sums of losses."""

from __future__ import annotations

import functools
import sys
from types import FrameType
from typing import Any

import torch

from harness.torch_objects import is_traced
from harness.watch.events import Combined, Pairing
from harness.watch.instrument.patches import Original, Patches
from harness.watch.session import Session

DEVIATIONS = ("abs", "__abs__", "square", "pow", "__pow__")
"""What a script does to a difference to make an error of it."""

COMPARISONS = {"__eq__": "==", "eq": "==", "__ne__": "!=", "ne": "!="}
SUBTRACTIONS = ("__sub__", "sub", "__isub__")
THRESHOLDS = ("__gt__", "__ge__", "gt", "ge")
COMBINATIONS = {
    "__add__": "+",
    "__radd__": "+",
    "__iadd__": "+",
    "add": "+",
    "__mul__": "*",
    "__rmul__": "*",
    "__imul__": "*",
    "mul": "*",
}


def install(threads: Session, patches: Patches) -> None:
    for name, sign in COMPARISONS.items():
        patches.put(torch.Tensor, name, _comparison(threads, sign, getattr(torch.Tensor, name)))
    for name in THRESHOLDS:
        patches.put(torch.Tensor, name, _threshold(threads, getattr(torch.Tensor, name)))
    for name in SUBTRACTIONS:
        patches.put(torch.Tensor, name, _subtraction(threads, getattr(torch.Tensor, name)))
    for name, sign in COMBINATIONS.items():
        patches.put(torch.Tensor, name, _combined(threads, sign, getattr(torch.Tensor, name)))
    for name in DEVIATIONS:
        patches.put(torch.Tensor, name, _deviation(threads, getattr(torch.Tensor, name)))


def _comparison(threads: Session, sign: str, original: Original) -> Original:
    @functools.wraps(original)
    def operation(one: torch.Tensor, other: Any, *args: Any, **kwargs: Any) -> Any:
        value = original(one, other, *args, **kwargs)
        if type(one) is not torch.Tensor or is_traced():  # to ask for a size is recorded, too
            return value
        if type(other) is torch.Tensor:
            if _meet_all(one, other, value):
                _tell_pairing(threads, sign, one, other)
            elif (monitor := threads.current()) and not _is_torchs_own(sys._getframe(1)):
                monitor.score(agrees=value if sign == "==" else None)
        elif type(other) is int and one.dtype is torch.int64 and one.dim() == 1 and (monitor := threads.current()):
            monitor.score_class(one)
        return value

    return operation


def _threshold(threads: Session, original: Original) -> Original:
    @functools.wraps(original)
    def operation(one: torch.Tensor, other: Any, *args: Any, **kwargs: Any) -> Any:
        if type(other) is float and type(one) is torch.Tensor and not one.requires_grad and not is_traced():
            monitor = threads.current()
            if monitor is not None and one.is_floating_point():
                monitor.threshold(one, other)
        return original(one, other, *args, **kwargs)

    return operation


def _subtraction(threads: Session, original: Original) -> Original:
    @functools.wraps(original)
    def operation(one: torch.Tensor, other: Any, *args: Any, **kwargs: Any) -> Any:
        value = original(one, other, *args, **kwargs)
        if type(other) is not torch.Tensor or type(one) is not torch.Tensor or is_traced():
            return value
        if _meet_all(one, other, value):
            _tell_pairing(threads, "-", one, other)
        elif not value.requires_grad:
            monitor = threads.current() if value.dim() else None
            if monitor is not None and monitor.locator.is_users(sys._getframe(1)):  # and no density's
                monitor.subtracted(value, (one, other))
        elif value.dim() == 0:
            _tell(threads, "-", one, other, value)
        return value

    return operation


def _is_torchs_own(frame: FrameType) -> bool:
    """Whether a module of torch compares: a Transformer whether its mask is causal, say."""
    return str(frame.f_globals.get("__name__", "")).startswith("torch.")


def _meet_all(one: torch.Tensor, other: torch.Tensor, value: torch.Tensor) -> bool:
    """Whether every number of the one met every number of the other."""
    return value.numel() > one.numel() > 1 < other.numel() < value.numel()


def _tell_pairing(threads: Session, sign: str, one: torch.Tensor, other: torch.Tensor) -> None:
    if (monitor := threads.current()) and not monitor.in_backward:
        monitor.emit(Pairing(sign, one, other, monitor.forwards, monitor.locator.where()))


def _deviation(threads: Session, original: Original) -> Original:
    @functools.wraps(original)
    def operation(one: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        if not is_traced() and not one.requires_grad and (monitor := threads.current()):
            monitor.deviates(one)
        return original(one, *args, **kwargs)

    return operation


def _combined(threads: Session, sign: str, original: Original) -> Original:
    @functools.wraps(original)
    def operation(one: torch.Tensor, other: Any, *args: Any, **kwargs: Any) -> Any:
        if is_traced():
            return original(one, other, *args, **kwargs)
        value = original(one, other, *args, **kwargs)
        # A weight of 0 is told of whatever it weighs: losses are weighed before or after their mean is taken.
        if type(value) is not torch.Tensor or not value.requires_grad:  # one that is spread over processes, too
            return value
        if value.dim() == 0 or (sign == "*" and type(other) in (int, float) and other == 0):
            _tell(threads, sign, one, other, value)
        return value

    return operation


def _tell(threads: Session, sign: str, one: torch.Tensor, other: Any, value: torch.Tensor) -> None:
    if (monitor := threads.current()) and not monitor.in_backward:
        monitor.emit(Combined(sign, (one, other), value, monitor.locator.where()))
