"""Warnings that a library gives its caller: the user's line is named, and not the wrapper between the two."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.watch.instrument.patches import Instrument, Original, Patches
from harness.watch.session import Session

OWN = str(Path(__file__).parent) + os.sep


def install(session: Session, patches: Patches) -> None:
    def shown(original: Original, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        message, category, name, *more = args
        if str(name).startswith(OWN) and (lines := session.locator.stack()):
            return original(message, category, *lines[0], *more[1:], **kwargs)
        return original(*args, **kwargs)

    patches.wrap(warnings, "showwarning", shown)


INSTRUMENTS = (Instrument((), install),)
