"""Warnings that a library gives its caller: the user's line is named, and not the wrapper between the two."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import TextIO

from harness.watch.instrument.patches import Patches
from harness.watch.session import Session

OWN = str(Path(__file__).parent) + os.sep


def install(threads: Session, patches: Patches) -> None:
    show = warnings.showwarning

    def showwarning(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        if filename.startswith(OWN) and (lines := threads.locator.stack()):
            filename, lineno = lines[0]
        show(message, category, filename, lineno, file, line)

    patches.put(warnings, "showwarning", showwarning)
