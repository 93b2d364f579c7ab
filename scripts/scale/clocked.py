"""``harness check`` with a clock around each fact and check: ``python -m scripts.scale.clocked RESULT ARGUMENT...``."""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness.cli import main
from harness.watch.monitor import Monitor

spent: Counter[str] = Counter()
"""Seconds of the processor in each; a fact that is asked is part of the one that asks."""
add = Monitor._add


def clocked(name: str, handle: Callable[[Any], None]) -> Callable[[Any], None]:
    def timed(event: Any) -> None:
        start = time.thread_time()
        try:
            handle(event)
        finally:
            spent[name] += time.thread_time() - start

    return timed


def add_clocked(self: Monitor, kind: Callable[[Monitor], Any]) -> Any:
    listener = add(self, kind)
    name = getattr(listener, "id", type(listener).__name__)
    for listeners in self._listeners.values():
        listeners[:] = [(each, clocked(name, handle) if each is listener else handle) for each, handle in listeners]
    return listener


if __name__ == "__main__":
    Monitor._add = add_clocked  # type: ignore[method-assign]
    try:
        main(sys.argv[2:], prog_name="harness")
    finally:
        Path(sys.argv[1]).write_text(json.dumps(spent))
