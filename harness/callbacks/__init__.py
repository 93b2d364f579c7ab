"""Watch a production run, a few updates at a time, and tell what is found where the run's other messages go.

    from harness.callbacks import TrainerCallback

    Trainer(…, callbacks=[TrainerCallback()]).train()

``LightningCallback`` is the same for Lightning, and ``watching`` for any other loop. docs/callbacks.md says what is
watched, what is not, and what it costs. Importing this package imports none of the libraries.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness.callbacks.lightning import LightningCallback
    from harness.callbacks.trainer import TrainerCallback
    from harness.watch.windows import Windows

__all__ = ["LightningCallback", "TrainerCallback", "watching"]


def __getattr__(name: str) -> Any:
    if name == "TrainerCallback":
        from harness.callbacks.trainer import TrainerCallback

        return TrainerCallback
    if name == "LightningCallback":
        from harness.callbacks.lightning import LightningCallback

        return LightningCallback
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


@contextmanager
def watching(*, share: float = 0.01, select: Collection[str] = (), ignore: Collection[str] = ()) -> Iterator[Windows]:
    """Watch the training in the block in windows.

    Args:
        share: of the run's time that watching may cost.
        select: run these checks only, by id or family; of them those that can judge windows.
        ignore: checks that are not wanted.

    Raises:
        CannotTry: a check that does not exist, none that can judge windows, or a share that is not between 0 and 1.
    """
    windows = in_windows(share, select, ignore)
    begin(windows)
    try:
        yield windows
    finally:
        windows.end()


def in_windows(share: float, select: Collection[str], ignore: Collection[str]) -> Windows:
    """What watches a run, and tells what it finds."""
    from harness.callbacks.telling import tell
    from harness.watch.windows import Windows

    return Windows(tell, share=share, select=select, ignore=ignore)


class InWindows:
    """What the callbacks of libraries have in common: they watch in windows.

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


def begin(windows: Windows, updates: int = 0) -> None:
    """Begin, on the first of several processes: all wait for the slowest, so that one alone is to cost what it may."""
    from harness.launch import is_main_process

    if is_main_process():
        windows.begin(updates)
