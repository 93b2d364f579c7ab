"""The command line, killed at random moments: a handful; ``python -m scripts.kills`` makes a hundred."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks for processes in /proc"),
]

ROOT = Path(__file__).parents[1]


def test_nothing_is_lost_broken_or_left_behind() -> None:
    """Each command by each signal, in a process that no test has computed in: it forks."""
    commands = [part for name in ("run", "baseline record", "documents") for part in ("--command", name)]
    done = subprocess.run(
        [sys.executable, "-m", "scripts.kills", "--kills", "9", *commands], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    assert "9 kills, 0 wrong" in done.stdout
    assert len(re.findall(r": struck$", done.stdout, re.MULTILINE)) >= 5
