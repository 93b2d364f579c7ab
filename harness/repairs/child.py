"""A start of a script that is tried with an edit: ``python -m harness.repairs.child FILE`` with what to do in FILE."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from harness.errors import CannotTry
from harness.resume.orders import Orders
from harness.watch.script import CheckReport, check_script

REPORT = "report.json"


def main(file: str) -> int:
    orders = Orders.read(Path(file))
    orders.pid_file(0).write_text(str(os.getpid()))

    def kept(report: CheckReport) -> int:
        Path(orders.folder, REPORT).write_text(json.dumps(report.as_dict()), encoding="utf-8")
        return 0

    try:
        return kept(
            check_script(
                orders.script,
                orders.arguments,
                module=orders.module,
                leaving=lambda outcome: kept(outcome()),
                **(orders.check or {}),
            )
        )
    except CannotTry as error:
        print(error, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
