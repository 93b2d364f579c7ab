from __future__ import annotations

from harness.watch.check import HELD
from harness.watch.checks.memory.graphs_kept import GraphsKept
from harness.watch.facts.graphs import LatestGraphs
from tests.checks.judging import Case

CASES = [
    Case(GraphsKept, LatestGraphs(all_alive=False), HELD),
    Case(GraphsKept, LatestGraphs(all_alive=True), "the losses of the last 7 updates are all still in memory"),
]
