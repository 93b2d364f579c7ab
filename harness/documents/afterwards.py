"""Ends the processes and removes the folder of a run of documents that was killed itself.

A process of its own, with nothing but the standard library: ``python afterwards.py FOLDER``. It is told the numbers of
process groups, one a line; where its input ends, the run has, and what is left of both goes.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
from contextlib import suppress


def main() -> None:
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, signal.SIG_IGN)  # they are for the run, which ends in its own way
    groups: set[int] = set()
    for line in sys.stdin:
        number = int(line)
        groups = groups - {-number} if number < 0 else groups | {number}
    for group in groups:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)
    shutil.rmtree(sys.argv[1], ignore_errors=True)


if __name__ == "__main__":
    main()
