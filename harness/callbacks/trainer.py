"""The callback for transformers' Trainer."""

from __future__ import annotations

from typing import Any

import transformers

from harness.callbacks import InWindows, begin


class TrainerCallback(InWindows, transformers.TrainerCallback):
    """Watches ``Trainer.train()``; takes what :class:`harness.callbacks.InWindows` takes."""

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        begin(self.windows, updates=state.global_step)

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.windows.end()
