"""Reports: where a script says what it found: by print, logging and tqdm, in files, and to what tracks it."""

from __future__ import annotations

import builtins
import csv
import json
import logging
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from io import StringIO
from types import ModuleType
from typing import Any

from harness.watch.events import Reported
from harness.watch.instrument.patches import Instrument, Original, Patches, calling_frame
from harness.watch.session import Session

LONGEST = 2000
"""Characters of a text that are looked at: a line of results is shorter."""

MOST_NUMBERS = 64
"""Entries of a mapping that are looked at."""


def install(session: Session, patches: Patches) -> None:
    _wrap(session, patches, builtins, "print", _printed)
    _wrap(session, patches, logging.Logger, "callHandlers", lambda args, kwargs: _message(args[1]))
    for owner, name in ((json, "dump"), (json, "dumps"), (csv.DictWriter, "writerow")):
        _wrap(session, patches, owner, name, lambda args, kwargs: _written(args), directly=True)


def install_tqdm(session: Session, patches: Patches, module: ModuleType) -> None:
    _wrap(session, patches, module.tqdm, "set_postfix", lambda args, kwargs: _named({**_given(args[1:]), **kwargs}))
    for name in ("set_postfix_str", "set_description", "set_description_str", "write"):
        _wrap(
            session,
            patches,
            module.tqdm,
            name,
            lambda args, kwargs: " ".join(each for each in args if isinstance(each, str)),
        )


def install_lightning(session: Session, patches: Patches, module: ModuleType) -> None:
    def text(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
        return "" if args[0].trainer.sanity_checking else _named(args[0]._callback_metrics)

    _wrap(session, patches, module._LoggerConnector, "update_eval_epoch_metrics", text)


def install_mlflow(session: Session, patches: Patches, module: ModuleType) -> None:
    _of_one("MlflowClient", "log_metric", "run_id", "key", "value")(session, patches, module)

    def text(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
        return _named({each.key: each.value for each in kwargs.get("metrics") or ()})

    _wrap(session, patches, module.MlflowClient, "log_batch", text)


def _of_mapping(owner: str, name: str, keyword: str) -> Callable[[Session, Patches, ModuleType], None]:
    """Instrument for a method that takes a mapping of names to numbers."""

    def install(session: Session, patches: Patches, module: ModuleType) -> None:
        def text(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
            return _named(_given(args[1:]) or kwargs.get(keyword))

        _wrap(session, patches, getattr(module, owner), name, text)

    return install


def _of_one(owner: str, name: str, *names: str) -> Callable[[Session, Patches, ModuleType], None]:
    """Instrument for a method that takes one name and one number, with its parameters so named."""

    def install(session: Session, patches: Patches, module: ModuleType) -> None:
        def text(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
            given = dict(zip(names, args[1:], strict=False)) | dict(kwargs)
            return f"{given.get(names[-2])}: {_said(given.get(names[-1]))}"

        _wrap(session, patches, getattr(module, owner), name, text)

    return install


LIBRARIES = {
    "tqdm.std": install_tqdm,
    "torch.utils.tensorboard.writer": _of_one("SummaryWriter", "add_scalar", "tag", "scalar_value"),
    "accelerate.accelerator": _of_mapping("Accelerator", "log", "values"),
    "transformers.trainer": _of_mapping("Trainer", "log", "logs"),
    "wandb.sdk.wandb_run": _of_mapping("Run", "log", "data"),
    "trackio.run": _of_mapping("Run", "log", "metrics"),
    "mlflow.tracking.client": install_mlflow,
    **{
        f"{package}.trainer.connectors.logger_connector.logger_connector": install_lightning
        for package in ("lightning.pytorch", "pytorch_lightning")
    },
}
"""Module in which something is wrapped to what wraps it, as of W&B 0.31, trackio 0.43 and MLflow 3.17."""

INSTRUMENTS = (
    Instrument((Reported,), install),
    *(Instrument((Reported,), install, module) for module, install in LIBRARIES.items()),
)


def _wrap(
    session: Session,
    patches: Patches,
    owner: Any,
    name: str,
    text: Callable[[tuple[Any, ...], Mapping[str, Any]], str],
    directly: bool = False,
) -> None:
    """``directly`` where libraries do the same with what is no result, such as their configuration."""

    def reported(original: Original, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        found = original(*args, **kwargs)
        monitor = session.current()
        users = not directly or monitor is None or monitor.locator.is_users(calling_frame())
        if monitor is not None and monitor.bus.wants(Reported) and users:
            shown = ""
            with suppress(Exception):  # what cannot be said is the script's own mistake, which its library deals with
                shown = text(args, kwargs)[:LONGEST]
            if shown.strip():
                monitor.emit(Reported(shown, monitor.locator.where()))
        return found

    patches.wrap(owner, name, reported)


def _printed(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
    """What is printed where somebody reads it: libraries also have text printed to look for something in it."""
    read = not isinstance(kwargs.get("file") or sys.stdout, StringIO)
    return str(kwargs.get("sep") or " ").join(map(_said, args)) if read else ""


def _message(record: logging.LogRecord) -> str:
    """What a logger says; nothing where objects of the script's own would have to say it, once more than it asks."""
    given = record.args.values() if isinstance(record.args, Mapping) else record.args or ()
    return record.getMessage() if all(map(_is_plain, (record.msg, *given))) else ""


def _is_plain(value: Any, nested: bool = False) -> bool:
    if isinstance(value, dict) and not nested:
        return all(_is_plain(each, nested=True) for pair in value.items() for each in pair)
    if isinstance(value, (list, tuple)) and not nested:
        return all(_is_plain(each, nested=True) for each in value)
    return type(value).__module__.partition(".")[0] in ("builtins", "numpy", "torch")


def _said(value: Any) -> str:
    """Text of a value as print says it; empty for something large, which takes long to say."""
    if isinstance(value, Mapping):
        return _named(value) if len(value) <= MOST_NUMBERS else ""
    if isinstance(value, (str, int, float)) or getattr(value, "size", None) == 1 or _is_one(value):
        return str(value)
    return ""


def _is_one(value: Any) -> bool:
    return getattr(value, "ndim", None) == 0


def _given(args: tuple[Any, ...]) -> dict[str, Any]:
    return dict(args[0]) if args and isinstance(args[0], Mapping) else {}


def _named(values: Any) -> str:
    """Numbers by their names, with all digits."""
    named = values.items() if isinstance(values, Mapping) else ()
    return ", ".join(f"{name}: {_said(value)}" for name, value in named)


def _written(args: tuple[Any, ...]) -> str:
    return next((_named(each) for each in args if isinstance(each, Mapping)), "")
