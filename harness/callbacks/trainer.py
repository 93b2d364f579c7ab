"""The callback for transformers' Trainer."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import transformers

from harness.callbacks import begin, in_windows


class TrainerCallback(transformers.TrainerCallback):
    """Watches ``Trainer.train()`` in windows.

    Args:
        share: of the run's time that watching may cost.
        select: run these checks only, by id or family; of them those that can judge windows.
        ignore: checks that are not wanted.

    Raises:
        CannotTry: a check that does not exist, none that can judge windows, or a share that is not between 0 and 1.
    """

    def __init__(self, share: float = 0.01, select: Collection[str] = (), ignore: Collection[str] = ()) -> None:
        self.windows = in_windows(share, select, ignore)

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        begin(self.windows, updates=state.global_step)

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.windows.end()
