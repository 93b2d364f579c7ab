"""Arithmetic of tensors by hand: losses and accuracies by subtractions and comparisons, and sums of losses."""

from __future__ import annotations

from collections.abc import Callable
from types import FrameType
from typing import Any

import torch

from harness.torch_objects import is_traced
from harness.watch.events import Combined, Pairing, Scored, ScoredInGraph, Thresholded
from harness.watch.instrument.patches import Instrument, Patches, calling_frame
from harness.watch.session import Session

Look = Callable[[Any, Any, Any], None]
"""Called with what an operator has given, and what it was given."""

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
    "mul_": "*",
    "__truediv__": "/",
    "__itruediv__": "/",
    "div": "/",
    "div_": "/",
}


def install_comparisons(session: Session, patches: Patches) -> None:
    for name, sign in COMPARISONS.items():
        patches.after_operator(torch.Tensor, name, _comparison(session, sign))


def install_thresholds(session: Session, patches: Patches) -> None:
    for name in THRESHOLDS:
        patches.after_operator(torch.Tensor, name, _threshold(session))


def install_subtractions(session: Session, patches: Patches) -> None:
    for name in SUBTRACTIONS:
        patches.after_operator(torch.Tensor, name, _subtraction(session))


def install_combinations(session: Session, patches: Patches) -> None:
    for name, sign in COMBINATIONS.items():
        patches.after_operator(torch.Tensor, name, _combined(session, sign))


def install_deviations(session: Session, patches: Patches) -> None:
    for name in DEVIATIONS:
        patches.after(torch.Tensor, name, _deviation(session))


INSTRUMENTS = (
    Instrument((Pairing, Scored, ScoredInGraph), install_comparisons),
    Instrument((Thresholded,), install_thresholds),
    Instrument((Pairing, Combined, Scored, ScoredInGraph), install_subtractions),
    Instrument((Pairing, Combined), install_combinations),
    Instrument((Scored, ScoredInGraph), install_deviations),
)


def _comparison(session: Session, sign: str) -> Look:
    def look(value: Any, one: torch.Tensor, other: Any) -> None:
        if type(one) is not torch.Tensor or is_traced():  # to ask for a size is recorded, too
            return
        if type(other) is torch.Tensor:
            if _meet_all(one, other, value):
                _tell_pairing(session, sign, one, other)
            elif (monitor := session.current()) and not _is_torchs_own(calling_frame()):
                monitor.score(agrees=value if sign == "==" else None)
        elif type(other) is int and one.dtype is torch.int64 and one.dim() == 1 and (monitor := session.current()):
            monitor.score_class(one)

    return look


def _threshold(session: Session) -> Look:
    def look(value: Any, one: torch.Tensor, other: Any) -> None:
        if type(other) is float and type(one) is torch.Tensor and not one.requires_grad and not is_traced():
            monitor = session.current()
            if monitor is not None and one.is_floating_point():
                monitor.threshold(one, other)

    return look


def _subtraction(session: Session) -> Look:
    def look(value: Any, one: torch.Tensor, other: Any) -> None:
        if type(other) is not torch.Tensor or type(one) is not torch.Tensor or is_traced():
            return
        if _meet_all(one, other, value):
            _tell_pairing(session, "-", one, other)
        elif not value.requires_grad:
            monitor = session.current() if value.dim() else None
            if monitor is not None and monitor.locator.is_users(calling_frame()):  # and no density's
                monitor.subtracted(value, (one, other))
        elif value.dim() == 0:
            _tell(session, "-", one, other, value)

    return look


def _is_torchs_own(frame: FrameType) -> bool:
    """Whether a module of torch compares: a Transformer whether its mask is causal, say."""
    return str(frame.f_globals.get("__name__", "")).startswith("torch.")


def _meet_all(one: torch.Tensor, other: torch.Tensor, value: torch.Tensor) -> bool:
    """Whether every number of the one met every number of the other."""
    return value.numel() > one.numel() > 1 < other.numel() < value.numel()


def _tell_pairing(session: Session, sign: str, one: torch.Tensor, other: torch.Tensor) -> None:
    if (monitor := session.current()) and not monitor.in_backward:
        monitor.emit(Pairing(sign, one, other, monitor.forwards, monitor.locator.where()))


def _deviation(session: Session) -> Callable[..., None]:
    def look(value: Any, one: torch.Tensor, *args: Any, **kwargs: Any) -> None:
        if not one.requires_grad and not is_traced() and (monitor := session.current()):
            monitor.deviates(one)

    return look


def _combined(session: Session, sign: str) -> Look:
    def look(value: Any, one: torch.Tensor, other: Any) -> None:
        # A weight of 0 is told of whatever it weighs: losses are weighed before or after their mean is taken.
        if type(value) is not torch.Tensor or not value.requires_grad:  # one that is spread over processes, too
            return
        if is_traced():
            return
        tensors = sign == "*" and type(other) is torch.Tensor
        if tensors and one.dim() + other.dim() == 3 and _meet_all(one, other, value):
            _tell_pairing(session, sign, one, other)  # of a column and a row: of others nobody asks
        elif value.dim() == 0 or (sign == "*" and type(other) in (int, float) and other == 0):
            _tell(session, sign, one, other, value)

    return look


def _tell(session: Session, sign: str, one: torch.Tensor, other: Any, value: torch.Tensor) -> None:
    if (monitor := session.current()) and not monitor.in_backward:
        monitor.emit(Combined(sign, (one, other), value, monitor.locator.where()))
