"""``harness check`` with a clock around each fact and check: ``python -m scripts.scale.clocked RESULT ARGUMENT...``."""

from __future__ import annotations

import json
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness.cli import main
from harness.watch.bus import Bus, KnownListener
from harness.watch.monitor import Monitor

spent: defaultdict[str, float] = defaultdict(float)
"""Seconds of the processor in each; a fact that is asked is part of the one that asks."""
add = Bus.add


def clocked(name: str, handle: Callable[[Any], None]) -> Callable[[Any], None]:
    def timed(event: Any) -> None:
        start = time.thread_time()
        try:
            handle(event)
        finally:
            spent[name] += time.thread_time() - start

    return timed


def add_clocked(self: Bus, kind: Callable[[Monitor], KnownListener]) -> KnownListener:
    listener = add(self, kind)
    name = getattr(listener, "id", type(listener).__name__)
    for told in self._told.values():
        told[:] = [(each, clocked(name, handle) if each is listener else handle) for each, handle in told]
    return listener


if __name__ == "__main__":
    Bus.add = add_clocked  # type: ignore[method-assign]
    try:
        main(sys.argv[2:], prog_name="harness")
    finally:
        Path(sys.argv[1]).write_text(json.dumps(spent))
