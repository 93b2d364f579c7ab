"""Runs a script in windows, and writes what they found: a program for the corpus's server (tests.checks.server).

``main([OUTPUT, APART, SCRIPT, ARGUMENT…])`` opens a window every APART updates.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path


def main(arguments: Sequence[str], prog_name: str = "") -> None:
    from harness.watch.locate import Locator
    from harness.watch.script import as_main, run_as_main
    from harness.watch.windows import Windows

    output, apart, script, *given = arguments
    told: list[dict[str, object]] = []
    windows = Windows(lambda finding: told.append(finding.as_dict()), apart=int(apart))
    with as_main(script, given, Path(script)):
        windows.begin()
        ending = run_as_main(script, Path(script), Locator())
        windows.end()
    found = {"told": told, "updates": windows.updates, "windows": windows.windows, "crashed": ending.crashed}
    Path(output).write_text(json.dumps(found), encoding="utf-8")
