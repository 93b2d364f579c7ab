"""A script that starts itself anew, as one does that sets PYTHONHASHSEED: it is watched from its new beginning."""

from __future__ import annotations

import functools
import json
import os
import posix
import re
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

READ_AT_IMPORT = re.compile(r"\b(OMP|MKL|KMP|GOMP|OPENBLAS|NUMEXPR|BLIS|VECLIB|ATEN|TORCH|PYTORCH)_[A-Z0-9_]+")
"""Variables that torch, NumPy and what they compute with read once, when they are imported."""

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


class _Torch(MetaPathFinder, Loader):
    """Sees when a script first imports torch, which was imported already: by then it may have set variables."""

    def __init__(self, before: Mapping[str, str]) -> None:
        self._before, self._module = before, sys.modules["torch"]
        self._spec = self._module.__spec__

    def find_spec(self, name: str, path: Any, target: ModuleType | None = None) -> ModuleSpec | None:
        if name != "torch" or self._spec is None:
            return None
        spec = ModuleSpec(name, self, origin=self._spec.origin, is_package=True)
        spec.submodule_search_locations = self._spec.submodule_search_locations
        return spec

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec
        with suppress(ValueError):
            sys.meta_path.remove(self)
        if _set_for_libraries() != self._before:
            start_again(os.environ)


def _set_for_libraries() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if READ_AT_IMPORT.fullmatch(name)}


def sees_variables(script: Path) -> None:
    """Start a script anew where it sets variables before it imports torch, which has been imported by then.

    Only a script that names such a variable is looked at.
    """
    with suppress(OSError):
        if "torch" in sys.modules and READ_AT_IMPORT.search(script.read_text(encoding="utf-8", errors="replace")):
            sys.meta_path.insert(0, _Torch(_set_for_libraries()))
            del sys.modules["torch"]
