"""One start of a script that is varied."""

from __future__ import annotations

import random
from functools import partial

import numpy as np
import torch

from harness.starts import child
from harness.starts.orders import Orders
from harness.starts.recorder import Recording
from harness.vary.account import Accountant
from harness.vary.change import Change, Loaders
from harness.watch.monitor import Monitor

TASK = "harness.vary.child:record"
"""What starts a script that is varied."""

SEED = 0


def begin_alike() -> None:
    """Seed the libraries, so that what the script does not seed itself is the same in each start."""
    random.seed(SEED)
    np.random.seed(SEED)
    torch.manual_seed(SEED)


def record(orders: Orders) -> int:
    """Run a script under the recorder, with what its orders say changed, and write its account.

    What the script does not seed itself begins alike in each start.
    """
    given = orders.vary or {}
    change = Change(given.get("kind", "as it is"), tuple(given.get("loaders", ())))
    loaders, accountants = Loaders(change), list[Accountant]()

    def accountant(monitor: Monitor) -> Accountant:
        accountants.append(Accountant(monitor, loaders, change))
        return accountants[-1]

    def listeners(recording: Recording) -> list[partial[Accountant]]:
        return [partial(accountant)]

    begin_alike()
    with loaders.installed():
        try:
            return child.record(orders, listeners)
        finally:
            if accountants:
                accountants[0].write(orders.folder)
