"""A process that opens a dataset and reads a few of its rows: by how many bytes did its largest resident memory grow?

Called with the folder of the dataset, that of a small one, and "mapped" or "in memory". It is a script of its own,
which imports nothing of the harness: what it measures is datasets alone.
"""

from __future__ import annotations

import sys
from pathlib import Path

from datasets import load_from_disk

PLACES = 8
"""At how many places of the dataset rows are read."""

ROWS = 8
"""How many are read there: a batch."""


def peak() -> int:
    """The largest resident memory of this process so far, in bytes."""
    status = Path("/proc/self/status")
    if status.exists():
        # Not ru_maxrss: where there is a parent with more memory, Linux begins with the parent's.
        kibibytes = [line.split()[1] for line in status.read_text().splitlines() if line.startswith("VmHWM")]
        if kibibytes:
            return int(kibibytes[0]) * 1024
    import resource  # not on Windows

    largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return largest if sys.platform == "darwin" else largest * 1024


def main(folder: str, small: str, how: str) -> None:
    for warm_up in (small, folder):
        before = peak()
        # None is the default, which the user's own settings of datasets decide on.
        rows = load_from_disk(warm_up, keep_in_memory=True if how == "in memory" else None)
        for place in range(0, len(rows), max(ROWS, len(rows) // PLACES)):
            rows[place : place + ROWS]
    print(peak() - before)


if __name__ == "__main__":
    main(*sys.argv[1:])
