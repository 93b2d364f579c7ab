"""Guards: nothing that an instrument of ours raises gets into the script's code."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Any

from harness.watch.locate import from_signal_handler


def is_the_scripts(error: BaseException) -> bool:
    """Whether an error goes on to the script: a signal handler of its own raised it, or HARNESS_DEBUG is set."""
    return bool(os.environ.get("HARNESS_DEBUG")) or from_signal_handler(error)


class Guard:
    """Stands between one instrument and the script: an instrument that raises is off from then on, and only that one.

    ``with guard:`` runs a block of the instrument's, :meth:`guarded` makes a hook of a function of its own.
    """

    __slots__ = ("_fails", "off")

    def __init__(self, fails: Callable[[Exception], None]) -> None:
        """``fails`` is told what the instrument raised."""
        self._fails = fails
        self.off = False

    def failed(self, error: Exception) -> None:
        """The instrument has raised.

        Raises:
            Exception: the error, where it is the script's (:func:`is_the_scripts`).
        """
        if is_the_scripts(error):
            raise error
        self.off = True
        with suppress(Exception):  # to name a failure must not fail the script either
            self._fails(error)

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        if not isinstance(error, Exception) or is_the_scripts(error):
            return False
        self.failed(error)
        return True

    def guarded(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A hook: ``function``, or nothing where the instrument is off, or fails in it."""

        @functools.wraps(function)
        def hook(*args: Any, **kwargs: Any) -> Any:
            if self.off:
                return None
            try:
                return function(*args, **kwargs)
            except Exception as error:  # noqa: BLE001 - one crash policy: the script never pays for it, and it is named
                self.failed(error)
            return None

        return hook
