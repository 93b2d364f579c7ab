"""Learning rate schedulers."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Mapping
from typing import Any

from torch.optim import lr_scheduler

from harness.watch.events import Load, SchedulerStep
from harness.watch.instrument.patches import Instrument, Original, Patches
from harness.watch.session import Session


class _Depth(threading.local):
    """How deep in one another schedulers step in this thread; their making is a step too."""

    calls = 0


def install(session: Session, patches: Patches) -> None:
    depth = _Depth()

    def made(original: Original, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        if monitor := session.current():
            monitor.schedulers[args[0]] = monitor.locator.where()
        depth.calls += 1  # it steps to its first value itself
        try:
            original(*args, **kwargs)
        finally:
            depth.calls -= 1

    def stepped(original: Original, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        depth.calls += 1
        try:
            return original(*args, **kwargs)
        finally:
            depth.calls -= 1
            monitor = session.current()
            if monitor is not None and not depth.calls:
                monitor.schedulers.setdefault(args[0], None)
                monitor.emit(SchedulerStep(args[0], monitor.locator.where(), _metric(*args, **kwargs)))

    def restored(original: Original, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        monitor = session.current()
        if monitor is None:
            return original(*args, **kwargs)
        with monitor.suspended:
            found = original(*args, **kwargs)
        state = args[1] if len(args) > 1 else kwargs["state_dict"]
        monitor.emit(Load(args[0], state, where=monitor.locator.where()))
        return found

    for name, member in list(vars(lr_scheduler).items()):
        if not inspect.isclass(member) or name.startswith("_") or not hasattr(member, "get_last_lr"):
            continue
        if vars(lr_scheduler).get(member.__name__) is member:  # not a second name of it
            for method, wrapper in (("__init__", made), ("step", stepped), ("load_state_dict", restored)):
                if method in vars(member):
                    patches.wrap(member, method, wrapper)


INSTRUMENTS = (Instrument((SchedulerStep, Load), install),)


def _metric(scheduler: Any, *args: Any, **kwargs: Any) -> float | None:
    if not isinstance(scheduler, lr_scheduler.ReduceLROnPlateau):
        return None
    try:
        return float(args[0] if args else kwargs["metrics"])
    except (KeyError, TypeError, ValueError, RuntimeError):  # step() itself says what is wrong with it
        return None
