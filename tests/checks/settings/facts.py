from __future__ import annotations

from harness.watch.check import HELD
from harness.watch.checks.settings.never_read import NeverRead
from harness.watch.checks.settings.observations.options import OptionsRead
from tests.checks.judging import Case

CASES = [
    Case(NeverRead, OptionsRead(options=3), HELD),
    Case(
        NeverRead,
        OptionsRead(options=3, unread=[("--warmup", "train.py:9")]),
        "--warmup (train.py:9) is declared, and nothing reads it",
    ),
    Case(
        NeverRead,
        OptionsRead(options=3, unread=[("--warmup", "train.py:9"), ("--decay", None)]),
        "--warmup (train.py:9), --decay are declared, and nothing reads them",
    ),
]
