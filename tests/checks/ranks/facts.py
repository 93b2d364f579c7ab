from __future__ import annotations

from harness.watch.check import HELD
from harness.watch.checks.ranks.processes import FewerThanAsked, RowsDividedTwice, RowsShared, WeightsDiffer
from harness.watch.facts.ranks import DatasetsOfRanks, ProcessesAsked, RowsOfRanks, WeightsOfRanks
from tests.checks.judging import Case

CASES = [
    Case(FewerThanAsked, ProcessesAsked(), HELD),
    Case(FewerThanAsked, ProcessesAsked(advice="Start it with torchrun."), "one"),
    Case(RowsDividedTwice, DatasetsOfRanks(rows=64, parts=2, differ=False), HELD),
    Case(RowsDividedTwice, DatasetsOfRanks(rows=64, parts=2, differ=True), "(64 rows on rank 0), and is given"),
    Case(RowsShared, RowsOfRanks(rank=1, rows=64, others=64, common=32), HELD),
    Case(RowsShared, RowsOfRanks(rank=1, rows=64, others=64, common=33), "33 of 64 rows of rank 0 are rank 1's too"),
    Case(WeightsDiffer, WeightsOfRanks(update=1, ranks=2, same=True), HELD),
    Case(WeightsDiffer, WeightsOfRanks(update=1, ranks=2, same=False), "they differ between the 2 ranks"),
]
