"""One start of a script that is compared: ``python -m harness.compare.child FILE``, as :mod:`harness.resume.child`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial

from harness.compare.look import Look
from harness.resume import child
from harness.resume.orders import Orders
from harness.resume.recorder import Recording
from harness.watch.monitor import AnyCheck, Monitor


def looks(orders: Orders, recording: Recording) -> Sequence[Callable[[Monitor], AnyCheck]]:
    return () if orders.keep is None else (partial(Look, recording=recording, keep=orders.keep),)


def main(file: str) -> int:
    return child.main(file, looks)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
