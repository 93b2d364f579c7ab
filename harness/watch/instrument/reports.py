"""Reports: where a script says what it found, by print, logging, tqdm, TensorBoard, Accelerate and Trainer."""

from __future__ import annotations

import builtins
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import ModuleType
from typing import Any

from harness.watch.events import Reported
from harness.watch.instrument.patches import Original, Patches
from harness.watch.session import Session

LONGEST = 2000
"""Characters of a text that are looked at: a line of results is shorter."""


def install(threads: Session, patches: Patches) -> None:
    _wrap(
        threads, patches, builtins, "print", lambda args, kwargs: str(kwargs.get("sep") or " ").join(map(_said, args))
    )
    _wrap(threads, patches, logging.Logger, "callHandlers", lambda args, kwargs: str(args[1].getMessage()))


def install_tqdm(threads: Session, patches: Patches, module: ModuleType) -> None:
    _wrap(threads, patches, module.tqdm, "set_postfix", lambda args, kwargs: _named({**_given(args[1:]), **kwargs}))
    for name in ("set_postfix_str", "set_description", "set_description_str", "write"):
        _wrap(
            threads,
            patches,
            module.tqdm,
            name,
            lambda args, kwargs: " ".join(each for each in args if isinstance(each, str)),
        )


def install_tensorboard(threads: Session, patches: Patches, module: ModuleType) -> None:
    _wrap(threads, patches, module.SummaryWriter, "add_scalar", lambda args, kwargs: _tagged(args[1:], kwargs))


def install_accelerate(threads: Session, patches: Patches, module: ModuleType) -> None:
    _wrap(
        threads,
        patches,
        module.Accelerator,
        "log",
        lambda args, kwargs: _named(_given(args[1:]) or kwargs.get("values")),
    )


def install_trainer(threads: Session, patches: Patches, module: ModuleType) -> None:
    _wrap(threads, patches, module.Trainer, "log", lambda args, kwargs: _named(_given(args[1:]) or kwargs.get("logs")))


MODULES = {
    "tqdm.std": install_tqdm,
    "torch.utils.tensorboard.writer": install_tensorboard,
    "accelerate.accelerator": install_accelerate,
    "transformers.trainer": install_trainer,
}


def _wrap(
    threads: Session,
    patches: Patches,
    owner: Any,
    name: str,
    text: Callable[[tuple[Any, ...], Mapping[str, Any]], str],
) -> None:
    def reported(original: Original, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        found = original(*args, **kwargs)
        monitor = threads.current()
        if monitor is not None and monitor.bus.wants(Reported):
            said = ""
            with suppress(Exception):  # what cannot be said is the script's own mistake, which its library deals with
                said = text(args, kwargs)[:LONGEST]
            if said.strip():
                monitor.emit(Reported(said, monitor.locator.where()))
        return found

    patches.wrap(owner, name, reported)


def _said(value: Any) -> str:
    """As print says it; of what is large nothing, which takes long to say."""
    return (
        str(value)
        if isinstance(value, (str, int, float)) or getattr(value, "size", None) == 1 or _is_one(value)
        else ""
    )


def _is_one(value: Any) -> bool:
    return getattr(value, "ndim", None) == 0


def _given(args: tuple[Any, ...]) -> dict[str, Any]:
    return dict(args[0]) if args and isinstance(args[0], Mapping) else {}


def _named(values: Any) -> str:
    """Numbers by their names, with all digits."""
    named = values.items() if isinstance(values, Mapping) else ()
    return ", ".join(f"{name}: {_said(value)}" for name, value in named)


def _tagged(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
    given = dict(zip(("tag", "scalar_value"), args, strict=False)) | dict(kwargs)
    return f"{given.get('tag')}: {_said(given.get('scalar_value'))}"
