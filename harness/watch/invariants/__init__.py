"""What holds for every right training loop: one file for each family of invariants, strongest first."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from harness.errors import CannotTry
from harness.watch.invariants.gradients import Gradients
from harness.watch.invariants.groups import Groups
from harness.watch.invariants.identity import Identity
from harness.watch.invariants.inputs import Inputs
from harness.watch.invariants.loss import Losses
from harness.watch.invariants.memory import Memory
from harness.watch.invariants.metrics import Metrics
from harness.watch.invariants.mode import Mode
from harness.watch.invariants.ranks import Ranks
from harness.watch.invariants.replays import Replays
from harness.watch.invariants.rows import Rows
from harness.watch.invariants.saved import Saved
from harness.watch.invariants.schedule import Schedule
from harness.watch.invariants.updates import Updates
from harness.watch.invariants.weights import Weights
from harness.watch.observer import Invariant

INVARIANTS: tuple[type[Invariant], ...] = (
    Gradients,
    Identity,
    Updates,
    Schedule,
    Rows,
    Mode,
    Inputs,
    Replays,
    Losses,
    Weights,
    Groups,
    Metrics,
    Ranks,
    Saved,
    Memory,
)

STATEMENTS = {statement.id: statement for invariant in INVARIANTS for statement in invariant.checks}


def known(checks: Iterable[str]) -> None:
    """Whether there are checks of these names.

    Raises:
        CannotTry: there is none of one of them.
    """
    for check in checks:
        if check not in STATEMENTS:
            close = difflib.get_close_matches(check, STATEMENTS, n=1, cutoff=0.4)
            meant = f"; did you mean {close[0]}?" if close else ""
            raise CannotTry(f"there is no check {check}{meant}")
