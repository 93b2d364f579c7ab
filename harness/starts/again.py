"""A script that starts itself anew, as one does that sets PYTHONHASHSEED: it is watched from its new beginning."""

from __future__ import annotations

import functools
import json
import os
import posix
import sys
from collections.abc import Mapping, Sequence
from typing import Any

AGAIN = "HARNESS_AGAIN"
"""What a process is told that starts a script anew, in its place and under the same watch: JSON with ``pid`` and
``arguments``."""

_started: tuple[str, int] | None = None
"""The script that this process runs, and the process's number."""


def runs(script: str) -> None:
    """This process is about to run a script: where it starts itself anew, that is under the watch, too."""
    global _started
    _started = (os.path.abspath(script), os.getpid())


def again(program: str, words: Sequence[str], environment: Mapping[str, Any]) -> None:
    """Start anew under the watch, where what is executed is the script itself, with this interpreter."""
    if _started is None or _started[1] != os.getpid() or not _is_this_python(program):
        return
    script = _started[0]
    at = next((number for number, word in enumerate(words[1:], 1) if os.path.abspath(word) == script), None)
    if at is not None:
        start_again(environment, words[at + 1 :])


def start_again(environment: Mapping[str, Any], arguments: Sequence[str] | None = None) -> None:
    """Replace this process by one that runs the script from its beginning, watched as this one is."""
    told = {"pid": os.getpid(), "arguments": None if arguments is None else list(arguments)}
    given = {os.fsdecode(name): os.fsdecode(value) for name, value in environment.items()}
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    posix.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], given | {AGAIN: json.dumps(told)})


@functools.cache
def started_again() -> dict[str, Any] | None:
    """What this process is told, where it starts a script anew."""
    told = json.loads(os.environ.pop(AGAIN, "null"))
    return told if told is not None and told["pid"] == os.getpid() else None


def _is_this_python(program: str) -> bool:
    return os.path.realpath(program) == os.path.realpath(sys.executable)
