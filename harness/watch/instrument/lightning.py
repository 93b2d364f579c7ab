"""Lightning: its Trainer counts the batches of an epoch to know when to validate, and a shortened one has fewer; its
callbacks say by which metric they keep a state or stop."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any
from weakref import WeakSet

from harness.watch.events import MetricMonitored, Pass, PassEnds
from harness.watch.instrument.patches import Instrument, Original, Patches
from harness.watch.session import Session


def install(session: Session, patches: Patches, module: ModuleType) -> None:
    """Have it validate after the last batch of a shortened epoch, as it would after that of a whole one."""
    validated: WeakSet[Pass] = WeakSet()

    def is_time(original: Original, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        validates, loop, monitor = original(*args, **kwargs), args[0], session.current()
        if validates or monitor is None:
            return validates
        ending = [each for each in monitor.passes if each.shortened and not each.over and each not in validated]
        if not ending or not loop._should_check_val_epoch() or loop.trainer._val_check_time_interval is not None:
            return validates
        validated.update(ending)
        return True

    patches.wrap(module._TrainingEpochLoop, "_should_check_val_fx", is_time)


def install_callback(name: str) -> Callable[[Session, Patches, ModuleType], None]:
    def install(session: Session, patches: Patches, module: ModuleType) -> None:
        def made(original: Original, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
            original(*args, **kwargs)
            callback, monitor = args[0], session.current()
            keeps_all = getattr(callback, "save_top_k", 1) in (0, -1)
            if monitor and isinstance(callback.monitor, str) and not keeps_all:
                where = monitor.locator.where()
                monitor.emit(MetricMonitored(name, callback.monitor, callback.mode == "max", where))

        patches.wrap(getattr(module, name), "__init__", made)

    return install


PACKAGES = ("lightning.pytorch", "pytorch_lightning")

INSTRUMENTS = (
    *(Instrument((PassEnds,), install, f"{package}.loops.training_epoch_loop") for package in PACKAGES),
    *(
        Instrument((MetricMonitored,), install_callback(name), f"{package}.callbacks.{file}")
        for package in PACKAGES
        for name, file in (("ModelCheckpoint", "model_checkpoint"), ("EarlyStopping", "early_stopping"))
    ),
)
