"""What watching in windows costs: between two windows, and in one, beside the same updates unwatched, in turns."""

from __future__ import annotations

import pytest

from harness.documented_run.recipe import RECIPES
from harness.documented_run.run import quiet_libraries
from harness.watch import windows
from harness.watch.windows import Windows
from tests.benchmarks.benchmark_loops import UPDATES, Document, prepared
from tests.benchmarks.conftest import Stopwatch, Subject
from tests.benchmarks.measure import TorchDevice

MOST = {"between windows": 1.01, "in a window": 2.0}
"""Watched over unwatched time of a round, at most."""


@pytest.mark.nightly
@pytest.mark.parametrize("where", MOST)
def test_windows(stopwatch: Stopwatch, where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A round in a window is one whole, which is opened and closed in it, with all checks that there are."""
    quiet_libraries()
    run = prepared(RECIPES["tiny"])
    subject, unwatched = Subject(run, Document(run), TorchDevice(run.device), "built in"), Document(run)
    watching = Windows(lambda finding: None, apart=1_000_000)
    monkeypatch.setattr(windows, "FIRST_WINDOW", UPDATES)
    if where == "between windows":
        watching._first = ()

    def watched() -> None:
        watching.begin()
        subject.document.train()
        watching.end()

    for _ in range(2):
        watched()
        unwatched.train()
    assert watching.windows == (where == "in a window")
    assert watching.updates == UPDATES
    limit = 1 / MOST[where]
    found = stopwatch(watched, unwatched.train, subject.device, limit=limit)
    assert watching.findings == {}
    if found is not None:
        info = stopwatch.benchmark.extra_info
        info["watched over unwatched"] = 1 / found.ratio
        info["updates that a window costs"] = UPDATES * (1 / found.ratio - 1)
        stopwatch.hold(found, limit)
