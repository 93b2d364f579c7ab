"""scikit-learn: scalers, and the rows that they are fitted on."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from harness.watch.events import ScalerFitted
from harness.watch.instrument.patches import Instrument, Original, Patches
from harness.watch.session import Session

SCALERS = ("MaxAbsScaler", "MinMaxScaler", "RobustScaler", "StandardScaler")

MOST_NUMBERS = 4_000_000
"""Numbers of the rows that a scaler is fitted on, up to which they are kept."""


def install_scalers(session: Session, patches: Patches, module: ModuleType) -> None:
    def fitted(original: Original, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        monitor = session.current()
        if monitor is None:
            return original(*args, **kwargs)
        with monitor.suspended:
            scaler = original(*args, **kwargs)
        rows = [*args[1:2], kwargs.get("X")][0]
        shape: Any = getattr(rows, "shape", ())
        dense = type(rows).__module__.partition(".")[0] in ("numpy", "pandas")  # and not sparse
        if dense and len(shape) == 2 and shape[0] * shape[1] <= MOST_NUMBERS:
            monitor.emit(ScalerFitted(copy.deepcopy(scaler), copy.deepcopy(rows), monitor.locator.where()))
        return scaler

    for name in SCALERS:
        patches.wrap(getattr(module, name, None), "fit", fitted)


INSTRUMENTS = (Instrument((ScalerFitted,), install_scalers, "sklearn.preprocessing._data"),)
