"""Permutations that a script draws for batches of its own."""

from __future__ import annotations

from typing import Any

import torch

from harness.watch.events import Drawn
from harness.watch.instrument.patches import Instrument, Patches, calling_frame
from harness.watch.session import Session


def install(session: Session, patches: Patches) -> None:
    # What is taken out of a tensor by an index cannot be seen: a __getitem__ of Python's own would make torch.tensor
    # take a tensor without dimensions for a sequence.
    def drawn(value: torch.Tensor, *args: Any, **kwargs: Any) -> None:
        monitor = session.current()
        if monitor is not None and monitor.locator.is_users(calling_frame()):  # and no library's sampler
            monitor.emit(Drawn(value, monitor.locator.where()))

    patches.after(torch, "randperm", drawn)


INSTRUMENTS = (Instrument((Drawn,), install),)
