"""Lightning: its Trainer counts the batches of an epoch to know when to validate, and a shortened one has fewer."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any
from weakref import WeakSet

from harness.watch.events import Pass, PassEnds
from harness.watch.instrument.patches import Instrument, Original, Patches
from harness.watch.session import Session


def install(threads: Session, patches: Patches, module: ModuleType) -> None:
    """Have it validate after the last batch of a shortened epoch, as it would after that of a whole one."""
    validated: WeakSet[Pass] = WeakSet()

    def is_time(original: Original, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        validates, loop, monitor = original(*args, **kwargs), args[0], threads.current()
        if validates or monitor is None:
            return validates
        ending = [each for each in monitor.passes if each.shortened and not each.over and each not in validated]
        if not ending or not loop._should_check_val_epoch() or loop.trainer._val_check_time_interval is not None:
            return validates
        validated.update(ending)
        return True

    patches.wrap(module._TrainingEpochLoop, "_should_check_val_fx", is_time)


INSTRUMENTS = tuple(
    Instrument((PassEnds,), install, f"{package}.loops.training_epoch_loop")
    for package in ("lightning.pytorch", "pytorch_lightning")
)
