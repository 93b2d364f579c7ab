"""datasets: the making of datasets, and changes of their columns."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any

from harness.watch.events import DatasetMade
from harness.watch.instrument.patches import Original, Patches
from harness.watch.session import Session

MODULE = "datasets.arrow_dataset"


def install(threads: Session, patches: Patches, module: ModuleType) -> None:
    def made(original: Original, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        original(*args, **kwargs)
        if monitor := threads.current():
            monitor.emit(DatasetMade(args[0]))

    def changed(original: Original, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        found = original(*args, **kwargs)
        if monitor := threads.current():
            monitor.emit(DatasetMade(found))
        return found

    patches.wrap(module.Dataset, "__init__", made)
    for name in ("remove_columns", "select_columns", "rename_column", "rename_columns"):
        patches.wrap(module.Dataset, name, changed)
