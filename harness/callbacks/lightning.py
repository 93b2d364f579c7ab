"""The callback for Lightning's Trainer, of the package ``lightning`` or ``pytorch_lightning``."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from harness.callbacks import InWindows, begin

if TYPE_CHECKING:
    Callback = object
else:
    NAMES = ("lightning.pytorch", "pytorch_lightning")
    INSTALLED = (name for name in NAMES if find_spec(name.partition(".")[0]))
    Callback = import_module(next((name for name in NAMES if name in sys.modules), next(INSTALLED, NAMES[0]))).Callback


class LightningCallback(InWindows, Callback):
    """Watches ``Trainer.fit()``; takes what :class:`harness.callbacks.InWindows` takes."""

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        begin(self.windows, updates=trainer.global_step)

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        self.windows.end()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        self.windows.end()
