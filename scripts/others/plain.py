"""Run a script as Python does, and write how it ended: what a set's programs do without any tool.

python -m scripts.others.plain --json FILE [-m] SCRIPT [ARGUMENTS]...
"""

from __future__ import annotations

import json
import os
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path


def main(words: Sequence[str], prog_name: str = "") -> None:
    _, report, script, *arguments = words
    broken, module = None, script == "-m"
    if module:
        script, *arguments = arguments
    sys.argv, sys.path[:0] = [script, *arguments], [os.getcwd() if module else str(Path(script).resolve().parent)]
    try:
        if module:
            runpy.run_module(script, run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(script, run_name="__main__")
    except SystemExit as ended:
        broken = None if ended.code in (None, 0) else f"it ended itself with {ended.code!r}"
    except BaseException as error:  # noqa: BLE001 - whatever it was, it is the script's
        broken = f"{type(error).__name__}: {error}"
    Path(report).write_text(json.dumps({"findings": [], "not_asked": None, "broken": broken}), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
