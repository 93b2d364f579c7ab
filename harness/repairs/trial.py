"""A start of a script that is tried with an edit, and watched."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path

from harness.errors import CannotTry
from harness.settings import WatchOptions
from harness.starts.orders import Orders
from harness.watch.script import CheckReport, check_script

TASK = "harness.repairs.trial:check"
"""This module's own, as orders name it."""

REPORT = "report.json"
"""Where it leaves what was found, in its orders' folder."""


def check(orders: Orders) -> int:
    """Watch the script as its orders say."""

    def kept(report: CheckReport) -> int:
        Path(orders.folder, REPORT).write_text(json.dumps(asdict(report)), encoding="utf-8")
        return 0

    try:
        return kept(
            check_script(
                orders.script,
                orders.arguments,
                WatchOptions(**(orders.check or {})),
                leaving=lambda outcome: kept(outcome()),
            )
        )
    except CannotTry as error:
        print(error, file=sys.stderr)
        return 2
