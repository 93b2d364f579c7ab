"""datasets: the making of datasets, and changes of their columns and of the number of their rows."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from harness.watch.events import DatasetMade, RowsPrepared
from harness.watch.instrument.patches import Instrument, Original, Patches
from harness.watch.session import Session


def install(session: Session, patches: Patches, module: ModuleType) -> None:
    def made(original: Original, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        original(*args, **kwargs)
        if monitor := session.current():
            monitor.emit(DatasetMade(args[0]))

    def changed(original: Original, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        found = original(*args, **kwargs)
        if monitor := session.current():
            monitor.emit(DatasetMade(found))
        return found

    within = threading.local()

    def prepared(original: Original, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        if getattr(within, "it", False):
            return original(*args, **kwargs)  # filter calls map for what it keeps
        within.it = True
        try:
            found = original(*args, **kwargs)
        finally:
            within.it = False
        monitor = session.current()
        if monitor and isinstance(found, module.Dataset) and len(found) != len(args[0]):
            where = monitor.locator.where()
            monitor.emit(RowsPrepared(original.__name__, len(args[0]), len(found), where))
        return found

    patches.wrap(module.Dataset, "__init__", made)
    for name in ("filter", "map"):
        patches.wrap(module.Dataset, name, prepared)
    for name in ("remove_columns", "select_columns", "rename_column", "rename_columns"):
        patches.wrap(module.Dataset, name, changed)


INSTRUMENTS = (Instrument((DatasetMade, RowsPrepared), install, "datasets.arrow_dataset"),)
