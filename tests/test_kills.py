"""The command line, killed at random moments: a handful; ``python -m scripts.kills`` makes a hundred."""

from __future__ import annotations

import sys

import pytest

from scripts.kills import campaign

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks for processes in /proc"),
]


def test_nothing_is_lost_broken_or_left_behind() -> None:
    """Each command by each signal."""
    table = campaign(9, 0, ("run", "baseline record", "documents"))
    assert table.wrong == []
    assert sum(count for (_, _, came), count in table.rows.items() if came == "struck") >= 5
