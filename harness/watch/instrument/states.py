"""States of modules and optimizers: asked for, loaded and saved."""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from types import ModuleType
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer

from harness.watch.events import FileRead, Load, LoadBegins, Renamed, Save, StateAsked
from harness.watch.instrument.patches import Instrument, Original, Patches
from harness.watch.session import Session


def install_safetensors(session: Session, patches: Patches, module: ModuleType) -> None:
    def saved(original: Original, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        monitor = session.current()
        if monitor is None:
            return original(*args, **kwargs)
        what = args[0] if args else kwargs.get("tensors", kwargs.get("model"))
        path = [*args[1:2], kwargs.get("filename")][0]
        monitor.emit(Save(what, monitor.locator.where(), _path(path)))
        with monitor.suspended:  # one of them calls the other
            return original(*args, **kwargs)

    for name in ("save_file", "save_model"):
        patches.wrap(module, name, saved)
    patches.wrap(module, "load_file", functools.partial(_read, session, "filename"))


def install(session: Session, patches: Patches) -> None:
    def into_module(original: Original, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        monitor = session.current()
        if monitor is None:
            return original(*args, **kwargs)
        strict = kwargs.get("strict", args[2] if len(args) > 2 else True)
        begins = LoadBegins(args[0], _state(args, kwargs), strict, monitor.locator.where())
        monitor.emit(begins)
        monitor.continues()
        with monitor.suspended:
            keys = original(*args, **kwargs)
        monitor.emit(Load(**vars(begins), unexpected=list(getattr(keys, "unexpected_keys", ()))))
        return keys

    def into_optimizer(original: Original, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        found = original(*args, **kwargs)
        if monitor := session.current():
            monitor.continues()
            monitor.emit(Load(args[0], _state(args, kwargs), where=monitor.locator.where()))
        return found

    def saved(original: Original, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        if monitor := session.current():
            path = [*args[1:2], kwargs.get("f")][0]
            monitor.emit(Save(args[0] if args else kwargs["obj"], monitor.locator.where(), _path(path)))
        return original(*args, **kwargs)

    def asked(original: Original, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        monitor = session.current()
        if monitor is None:
            return original(*args, **kwargs)
        where = monitor.locator.where()
        with monitor.suspended:
            state = original(*args, **kwargs)
        monitor.emit(StateAsked(args[0], where, state))
        return state

    patches.wrap(nn.Module, "state_dict", asked)
    patches.wrap(nn.Module, "load_state_dict", into_module)
    patches.wrap(Optimizer, "load_state_dict", into_optimizer)
    patches.wrap(torch, "save", saved)
    patches.wrap(torch, "load", functools.partial(_read, session, "f"))


def install_renames(session: Session, patches: Patches) -> None:
    def renamed(value: Any, *args: Any, **kwargs: Any) -> None:
        source, target = (_path([*args[at : at + 1], kwargs.get(name)][0]) for at, name in ((0, "src"), (1, "dst")))
        if (monitor := session.current()) and source is not None and target is not None:
            monitor.emit(Renamed(source, target))

    for name in ("rename", "replace"):
        patches.after(os, name, renamed)


def _read(session: Session, keyword: str, original: Original, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Read tensors from a file, and keep its name: a state that is loaded next is from there."""
    found = original(*args, **kwargs)
    if monitor := session.current():
        monitor.file_read = _path([*args[:1], kwargs.get(keyword)][0])
        monitor.emit(FileRead(monitor.file_read, found))
    return found


INSTRUMENTS = (
    Instrument((LoadBegins, Load, Save, StateAsked, FileRead), install),
    Instrument((Renamed,), install_renames),
    Instrument((Save, FileRead), install_safetensors, "safetensors.torch"),
)


def _path(given: Any) -> str | None:
    """Path of a file that is given by its name, or open."""
    named = given if isinstance(given, (str, os.PathLike)) else getattr(given, "name", None)
    return os.path.abspath(named) if isinstance(named, (str, os.PathLike)) else None


def _state(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    return args[1] if len(args) > 1 else kwargs["state_dict"]
