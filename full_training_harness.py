"""Where pytest and the command line find the package ``harness``, also in a project that has one of that name.

``import harness`` finds whatever comes first on ``sys.path``: in a project with a folder ``harness`` of its own that is
the project's. This module has a name of its own. It finds the package beside itself, and where the project has another
one, lets each side import its own (:mod:`harness.namesake`).
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

HOME = Path(__file__).resolve().parent
"""The folder that this module and the package ``harness`` were installed into."""


def _find_ours() -> None:
    """``harness`` is our package from now on, whatever comes before it on the path, for what is in it."""
    others = {name: module for name, module in sys.modules.items() if name.partition(".")[0] == "harness"}
    if others and not _is_ours(others.get("harness")):
        for name in others:
            del sys.modules[name]
    else:
        others = {}
    sys.path.insert(0, str(HOME))
    try:
        from harness import namesake
    finally:
        sys.path.remove(str(HOME))
    namesake.share_with([Path.cwd(), Path.cwd() / "src"], theirs=others)


def _is_ours(module: ModuleType | None) -> bool:
    file = getattr(module, "__file__", None)
    return file is not None and Path(file).resolve().parent == HOME / "harness"


def main() -> None:
    """The command ``harness``."""
    _find_ours()
    from harness.cli import main

    main()


if __name__ != "__main__" and "pytest" in sys.modules:
    _find_ours()
    from harness import pytest_plugin

    sys.modules[__name__] = pytest_plugin  # what pytest gets as the plugin, also where it is named another time
