"""The callback for Lightning's Trainer, of the package ``lightning`` or ``pytorch_lightning``."""

from __future__ import annotations

import sys
from collections.abc import Collection
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from harness.callbacks import begin, in_windows

if TYPE_CHECKING:
    Callback = object
else:
    NAMES = ("lightning.pytorch", "pytorch_lightning")
    INSTALLED = (name for name in NAMES if find_spec(name.partition(".")[0]))
    Callback = import_module(next((name for name in NAMES if name in sys.modules), next(INSTALLED, NAMES[0]))).Callback


class LightningCallback(Callback):
    """Watches ``Trainer.fit()`` in windows.

    Args:
        share: of the run's time that watching may cost.
        select: run these checks only, by id or family; of them those that can judge windows.
        ignore: checks that are not wanted.

    Raises:
        CannotTry: a check that does not exist, none that can judge windows, or a share that is not between 0 and 1.
    """

    def __init__(self, share: float = 0.01, select: Collection[str] = (), ignore: Collection[str] = ()) -> None:
        super().__init__()
        self.windows = in_windows(share, select, ignore)

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        begin(self.windows, updates=trainer.global_step)

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        self.windows.end()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        self.windows.end()
