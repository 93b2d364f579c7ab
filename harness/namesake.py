"""Two packages of one name: a project that has a package ``harness`` of its own gets its own, and we get ours.

Nothing happens unless there is one. Then ``import harness…`` in a file of ours gives ours, and in any other file the
project's: while one side imports, its modules stand in ``sys.modules``. ``importlib.import_module`` gives ours.
"""

from __future__ import annotations

import builtins
import os
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

NAME = __name__.partition(".")[0]
HOME = str(Path(__file__).resolve().parent)
OWN = Path(__file__).name
"""This file: a package of our name that has it is a copy of ours, such as a checkout beside an installation."""

_lock = threading.RLock()
_waiting: dict[str, ModuleType] | None = None
"""The modules of the side whose turn it is not; None where the project has no package of our name."""
_is_our_turn = True


def has_own(folders: Iterable[Path]) -> Path | None:
    """The project's own package or module of our name in one of these folders; None where there is none."""
    for folder in folders:
        spec = PathFinder.find_spec(NAME, [str(folder)])
        places = [spec.origin, *(spec.submodule_search_locations or ())] if spec is not None else []
        for place in filter(None, places):
            found = Path(place).resolve()
            ours = any((each / OWN).exists() for each in (found, found.parent))
            if not ours and any(found.rglob("*.py") if found.is_dir() else [found]):
                return found
    return None


def share_with(folders: Iterable[Path], theirs: Mapping[str, ModuleType] | None = None) -> None:
    """From now on let each side import its own, where one of the folders has a package of our name.

    ``theirs``: what of the project's has been imported already.
    """
    global _waiting
    if _waiting is not None or (not theirs and has_own(folders) is None):
        return
    _waiting = dict(theirs or {})
    original = builtins.__import__

    def chosen(
        name: str,
        globals: Mapping[str, Any] | None = None,  # noqa: A002 - as Python calls it
        locals: Mapping[str, Any] | None = None,  # noqa: A002
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        if not level and name.partition(".")[0] != NAME:
            return original(name, globals, locals, fromlist or (), level)
        with _turn(ours=_is_ours(globals) or not _theirs_is_found()):
            return original(name, globals, locals, fromlist or (), level)

    builtins.__import__ = chosen


def _is_ours(of_caller: Mapping[str, Any] | None) -> bool:
    file = (of_caller or {}).get("__file__")
    return isinstance(file, str) and (file.startswith(f"{HOME}{os.sep}") or Path(file).stem == "full_training_harness")


def _theirs_is_found() -> bool:
    """Whether an import by the project finds its own: it is imported already, or comes first on the path."""
    if not _is_our_turn or NAME in (_waiting or {}):
        return True
    folders = (Path(each or os.curdir) for each in sys.path)
    first = next((each for each in folders if PathFinder.find_spec(NAME, [str(each)]) is not None), None)
    return first is not None and has_own([first]) is not None


@contextmanager
def _turn(*, ours: bool) -> Iterator[None]:
    """The modules of that side stand in ``sys.modules``; those of the other wait."""
    global _is_our_turn
    with _lock:
        changes = ours != _is_our_turn
        if changes:
            _exchange()
            _is_our_turn = ours
        try:
            yield
        finally:
            if changes:
                _exchange()
                _is_our_turn = not ours


def _exchange() -> None:
    global _waiting
    standing = {name: sys.modules.pop(name) for name in [*sys.modules] if name.partition(".")[0] == NAME}
    sys.modules.update(_waiting or {})
    _waiting = standing
