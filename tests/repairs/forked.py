"""Repairs a script as ``harness check --fix`` does, in forks of a process that has imported the libraries.

:class:`tests.server.Server` runs its ``main``; each start of the script is a fork of a process that has computed
nothing, as in :mod:`tests.resume.forked`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from harness.cli import main as command
from harness.errors import CannotTry
from harness.repairs.prove import bench, prove
from harness.starts.workdir import LEAST_PATIENCE
from tests.resume import forked

RESULT = "repaired.json"


def main(arguments: Sequence[str], prog_name: str) -> None:
    """What was found in a script, the patches for it, and what is found in it afterwards; or ``harness check …``."""
    forked.install()
    if arguments[0] == "check":
        command(list(arguments), prog_name=prog_name)
    script, *further = arguments
    with bench(script, further) as on:
        report = on.run({}, LEAST_PATIENCE)
        if isinstance(report, str):
            raise CannotTry(report)
        proved = prove(on, report, again=report)
    proved.write()
    found = {
        "before": report.as_dict(),
        "patches": [vars(each) for each in proved.patches],
        "after": proved.report.as_dict(),
        "runs": on.number,
    }
    Path(RESULT).write_text(json.dumps(found), encoding="utf-8")
