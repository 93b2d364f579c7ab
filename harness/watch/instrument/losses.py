"""Calls of torch's loss functions."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch.nn import functional

from harness.watch.events import LOSSES, AlignmentLoss, LossCall, Scored, ScoredInGraph, SignedLoss
from harness.watch.instrument.patches import Instrument, Original, Patches
from harness.watch.session import Session

SIGNED = ("margin_ranking_loss", "hinge_embedding_loss", "cosine_embedding_loss", "soft_margin_loss")
"""Losses whose targets are 1 and -1."""


class _GoingOn(threading.local):
    """The loss function that is being called: with a default device, or tensors of a class of their own, torch hands a
    call on to what calls the function again."""

    name: str | None = None

    def call(self, original: Original, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[Any, bool]:
        """What a function gives, and whether it is the script's call and none that torch makes within it."""
        before, self.name = self.name, original.__name__
        try:
            return original(*args, **kwargs), before != original.__name__
        finally:
            self.name = before


def install(session: Session, patches: Patches) -> None:
    parameters, going_on = _parameters(LOSSES), _GoingOn()

    def loss(original: Original, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        value, is_scripts = going_on.call(original, args, kwargs)
        monitor = session.current() if is_scripts else None
        if monitor is None or not torch.is_tensor(value):
            return value
        name = original.__name__
        given = dict(zip(parameters[name], args, strict=False)) | dict(kwargs)
        inputs, target = given.pop("input"), given.pop("target")
        _rename_reduction(given)
        call = LossCall(name, inputs, target, given, value, monitor.batch, monitor.locator.where())
        inside = bool(session.calling.depth)
        if inside:
            session.calling.losses.append(call)
        if value.requires_grad:
            monitor.loss(call)
        if not inside:  # else it scores what is being called
            monitor.score(call)
        return value

    for name in LOSSES:
        patches.wrap(functional, name, loss)


def install_signed(session: Session, patches: Patches) -> None:
    parameters, going_on = _parameters(SIGNED), _GoingOn()

    def signed(original: Original, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        value, is_scripts = going_on.call(original, args, kwargs)
        monitor = session.current() if is_scripts else None
        if monitor is not None and torch.is_tensor(value) and value.requires_grad:
            name = original.__name__
            given = dict(zip(parameters[name], args, strict=False)) | dict(kwargs)
            monitor.emit(SignedLoss(name, given["target"], monitor.locator.where()))
        return value

    for name in SIGNED:
        patches.wrap(functional, name, signed)


def install_alignments(session: Session, patches: Patches) -> None:
    names = _parameters(["ctc_loss"])["ctc_loss"]

    def aligned(original: Original, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        value = original(*args, **kwargs)
        monitor = session.current()
        if monitor is not None and torch.is_tensor(value) and value.requires_grad:
            given = dict(zip(names, args, strict=False)) | dict(kwargs)
            blank, where = given.get("blank", 0), monitor.locator.where()
            lengths = given["target_lengths"], given["input_lengths"]
            monitor.emit(AlignmentLoss(given["targets"], *lengths, blank, where))
        return value

    patches.wrap(functional, "ctc_loss", aligned)


INSTRUMENTS = (
    Instrument((LossCall, Scored, ScoredInGraph), install),
    Instrument((SignedLoss,), install_signed),
    Instrument((AlignmentLoss,), install_alignments),
)


def _rename_reduction(options: dict[str, Any]) -> None:
    """Say the reduction by its name of today, where the script says it by those that torch had before."""
    averages, reduces = options.pop("size_average", None), options.pop("reduce", None)
    if averages is not None or reduces is not None:
        summed = "sum" if averages is not None and not averages else "mean"
        options["reduction"] = "none" if reduces is not None and not reduces else summed


def _parameters(functions: Iterable[str]) -> dict[str, tuple[str, ...]]:
    return {name: tuple(inspect.signature(getattr(functional, name)).parameters) for name in functions}
