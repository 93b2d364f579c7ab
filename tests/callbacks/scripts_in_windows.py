"""Runs a script in windows, and writes what they found: a program for the corpus's server (tests.server).

``main([OUTPUT, "first" or "later", SCRIPT, ARGUMENT…])``: the script is seen from its beginning, and in windows of 4
updates that are 2 apart from then on; or in such windows only.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path


def main(arguments: Sequence[str], prog_name: str = "") -> None:
    from harness.watch import windows as module
    from harness.watch.locate import Locator
    from harness.watch.running import as_main, run_as_main
    from harness.watch.windows import Windows

    output, which, script, *given = arguments
    told: list[dict[str, object]] = []
    module.LATER = 4
    windows = Windows(lambda finding: told.append(finding.as_dict()), apart=2)
    if which == "later":
        windows._first = ()
    with as_main(script, given, Path(script)):
        windows.begin()
        ending = run_as_main(script, Path(script), Locator())
        windows.end()
    found = {"told": told, "updates": windows.updates, "windows": windows.windows, "crashed": ending.crashed}
    Path(output).write_text(json.dumps(found), encoding="utf-8")
