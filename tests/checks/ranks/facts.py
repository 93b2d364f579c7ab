from __future__ import annotations

from typing import Any

from harness.watch.check import HELD, NOTHING_TO_JUDGE
from harness.watch.checks.ranks.gradients import ClippedBeforeAveraging, GradientScaled, TokensWeighUnlike
from harness.watch.checks.ranks.processes import FewerThanAsked, RowsDividedTwice, RowsShared, WeightsDiffer
from harness.watch.facts.rank_gradients import GradientsOfRanks
from harness.watch.facts.ranks import DatasetsOfRanks, ProcessesAsked, RowsOfRanks, WeightsOfRanks
from tests.checks.judging import Case


def gradients(**how: Any) -> GradientsOfRanks:
    """Of a training that is right, but for ``how``."""
    right: dict[str, Any] = {"ranks": 2, "updates": 8, "passes": 1, "reduced": 1.0, "whole": 1.0, "off": 0.0}
    more: dict[str, Any] = {
        "uneven": 1.0,
        "unequal": 1.0,
        "of_all": False,
        "clipped": True,
        "clipped_own": None,
        "by_trainer": False,
        "divided": None,
        "where": "train.py:9",
    }
    return GradientsOfRanks(**(right | more | {"nearest": how.get("whole", 1.0)} | how))


CASES = [
    Case(GradientScaled, gradients(), HELD),
    Case(GradientScaled, gradients(updates=1), NOTHING_TO_JUDGE),
    Case(GradientScaled, gradients(whole=None), NOTHING_TO_JUDGE),
    Case(GradientScaled, gradients(whole=1.002, reduced=2.0), NOTHING_TO_JUDGE),
    Case(GradientScaled, gradients(whole=None, nearest=1.04, off=0.01), HELD),
    Case(GradientScaled, gradients(whole=None, nearest=2.04, off=0.01, reduced=2.0), "2 times that gradient"),
    Case(GradientScaled, gradients(whole=None, nearest=2.2, off=0.01, reduced=2.0), NOTHING_TO_JUDGE),
    Case(GradientScaled, gradients(whole=None, nearest=2.0, off=0.05, reduced=2.0), NOTHING_TO_JUDGE),
    Case(GradientScaled, gradients(whole=2.0, reduced=2.0), "2 times that gradient, in 8 updates of 2 processes"),
    Case(GradientScaled, gradients(whole=2.0), NOTHING_TO_JUDGE),
    Case(GradientScaled, gradients(whole=2.0, by_trainer=True), "2 times that gradient, in 8 updates of 2 processes"),
    Case(GradientScaled, gradients(whole=3.0, by_trainer=True), NOTHING_TO_JUDGE),
    Case(GradientScaled, gradients(whole=0.5), NOTHING_TO_JUDGE),
    Case(GradientScaled, gradients(whole=0.5, reduced=0.5), "a half of that gradient"),
    Case(GradientScaled, gradients(whole=0.25, reduced=0.25, ranks=4), "1/4 of that gradient"),
    Case(GradientScaled, gradients(whole=0.5, divided="train.py:7"), "a half of that gradient"),
    Case(GradientScaled, gradients(whole=0.5, of_all=True), "a half of that gradient"),
    Case(GradientScaled, gradients(whole=0.3, reduced=0.3), NOTHING_TO_JUDGE),
    Case(ClippedBeforeAveraging, gradients(), HELD),
    Case(ClippedBeforeAveraging, gradients(reduced=None), NOTHING_TO_JUDGE),
    Case(ClippedBeforeAveraging, gradients(clipped=False), NOTHING_TO_JUDGE),
    Case(ClippedBeforeAveraging, gradients(clipped_own="train.py:8"), "each rank clips its own gradients"),
    Case(TokensWeighUnlike, gradients(), NOTHING_TO_JUDGE),
    Case(TokensWeighUnlike, gradients(unequal=1.24), NOTHING_TO_JUDGE),
    Case(TokensWeighUnlike, gradients(unequal=1.25), HELD),
    Case(TokensWeighUnlike, gradients(uneven=1.25), HELD),
    Case(TokensWeighUnlike, gradients(uneven=1.25, off=0.049), HELD),
    Case(
        TokensWeighUnlike,
        gradients(uneven=1.25, off=0.05, whole=None),
        "the gradient is off by 5%: a token of one backward pass counts up to 1.2 times as much as a token of",
    ),
    Case(TokensWeighUnlike, gradients(uneven=2.0, off=0.5, whole=None, reduced=None), NOTHING_TO_JUDGE),
    Case(TokensWeighUnlike, gradients(uneven=2.0, off=0.5, whole=None, updates=1), NOTHING_TO_JUDGE),
    Case(FewerThanAsked, ProcessesAsked(), HELD),
    Case(FewerThanAsked, ProcessesAsked(advice="Start it with torchrun."), "one"),
    Case(RowsDividedTwice, DatasetsOfRanks(rows=64, parts=2, differ=False), HELD),
    Case(
        RowsDividedTwice,
        DatasetsOfRanks(rows=64, parts=2, differ=True),
        "each rank has its own dataset (64 rows on rank 0) and gets only one of 2 parts of it",
    ),
    Case(RowsShared, RowsOfRanks(rank=1, rows=64, others=64, common=32), HELD),
    Case(
        RowsShared,
        RowsOfRanks(rank=1, rows=64, others=64, common=33),
        "33 of the 64 rows of rank 0 are also rows of rank 1",
    ),
    Case(WeightsDiffer, WeightsOfRanks(update=1, ranks=2, same=True), HELD),
    Case(WeightsDiffer, WeightsOfRanks(update=1, ranks=2, same=False, averaged=True), NOTHING_TO_JUDGE),
    Case(WeightsDiffer, WeightsOfRanks(update=1, ranks=2, same=False), "the weights differ between the 2 ranks"),
]
