"""Seeds: what the script gives torch, NumPy and Python to draw random numbers from."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from harness.watch.events import Seeded
from harness.watch.instrument.patches import Instrument, Original, Patches
from harness.watch.session import Session

SEEDS: tuple[tuple[str, Any, str], ...] = (
    ("torch", torch, "manual_seed"),
    ("NumPy", np.random, "seed"),
    ("Python", random, "seed"),
)


def install(session: Session, patches: Patches) -> None:
    for library, owner, name in SEEDS:

        def seeded(original: Original, args: tuple[Any, ...], kwargs: Mapping[str, Any], library: str = library) -> Any:
            found = original(*args, **kwargs)
            if monitor := session.current():
                seed = args[0] if args else next(iter(kwargs.values()), None)
                monitor.emit(Seeded(library, seed, monitor.locator.where()))
            return found

        patches.wrap(owner, name, seeded)


INSTRUMENTS = (Instrument((Seeded,), install),)
