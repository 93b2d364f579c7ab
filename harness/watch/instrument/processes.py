"""Processes: a copy of this one is not watched, one that is left at once says first what was found, and ranks that we
start ourselves do not wait for one another for ever."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import timedelta
from types import ModuleType
from typing import Any

from harness.launch import WAITS
from harness.watch.instrument.patches import Instrument, Original, Patches
from harness.watch.session import Session

TIMEOUT = 2
"""The place of init_process_group's timeout among its arguments."""


def install(session: Session, patches: Patches) -> None:
    def forked(original: Original, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        child = original(*args, **kwargs)
        if child == 0 or (isinstance(child, tuple) and child[0] == 0):  # os.forkpty gives two numbers
            session.closed = True  # the loop goes on in the parent
        return child

    def left(original: Original, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        status = args[0] if args else kwargs["status"]
        if session.leaving is not None and not session.closed:
            status = session.leaving(status)
        return original(status)

    def replaced(original: Original, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        if session.leaving is not None and not session.closed:
            session.leaving(0)
        return original(*args, **kwargs)

    for name in ("fork", "forkpty"):
        patches.wrap(os, name, forked)
    patches.wrap(os, "_exit", left)
    for name in ("execv", "execve"):  # all others call these
        patches.wrap(os, name, replaced)


def install_groups(session: Session, patches: Patches, module: ModuleType) -> None:
    """Give up on a rank that hangs: torch's own patience is half an hour."""
    waits = os.environ.get(WAITS)

    def joined(original: Original, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        patience = timedelta(seconds=float(waits or 0))
        if len(args) > TIMEOUT:
            return original(*args[:TIMEOUT], patience, *args[TIMEOUT + 1 :], **kwargs)
        return original(*args, **{**kwargs, "timeout": patience})

    if waits:
        patches.wrap(module, "init_process_group", joined)


INSTRUMENTS = (
    Instrument((), install),
    Instrument((), install_groups, "torch.distributed"),
)
