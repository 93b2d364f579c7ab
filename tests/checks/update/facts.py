from __future__ import annotations

import torch

from harness.watch.check import HELD, NOTHING_TO_JUDGE
from harness.watch.checks.parameters.unchanged import Unchanged
from harness.watch.checks.update.observations.own_formulas import CORRECTIONS, OwnAdamUsed
from harness.watch.checks.update.results import Ascends, NotAsDefined, RoundedAway
from harness.watch.facts.ascent import LossFollowed
from harness.watch.facts.tensor_updates import TensorsUpdated, TensorUpdate
from tests.checks.judging import Case


def updated(
    *as_defined: bool | None,
    fault: str | None = None,
    due: bool = True,
    changed: bool = True,
    rounded_away: float | None = None,
    dtype: torch.dtype = torch.float32,
) -> TensorsUpdated:
    """Of a tensor for each of ``as_defined``."""
    tensors = [
        TensorUpdate(torch.zeros(2), dtype, 0.1, due, changed, each, fault, name="head.weight") for each in as_defined
    ]
    return TensorsUpdated(tensors=tensors, rounded_away=rounded_away)


CASES = [
    Case(Ascends, LossFollowed(), HELD),
    Case(Ascends, LossFollowed(climbs="by the optimizer"), HELD),
    Case(Ascends, LossFollowed(climbs="by the loss"), "backward() is called on the negative loss"),
    Case(NotAsDefined, OwnAdamUsed(betas=(0.9, 0.999)), HELD),
    Case(NotAsDefined, OwnAdamUsed(betas=(0.9, 0.999), fault=CORRECTIONS["none"]), NOTHING_TO_JUDGE),
    Case(NotAsDefined, OwnAdamUsed(betas=(0.9, 0.999), fault=CORRECTIONS["none"], named=True), "not corrected for"),
    Case(
        NotAsDefined, OwnAdamUsed(betas=(0.9, 0.99), fault=CORRECTIONS["first"]), "the second moment is not corrected"
    ),
    Case(NotAsDefined, updated(True, False), HELD),
    Case(NotAsDefined, updated(None, None), NOTHING_TO_JUDGE),
    Case(NotAsDefined, updated(False, False, rounded_away=0.5), HELD),
    Case(NotAsDefined, updated(False, False), "all 2 tensors looked at were updated differently"),
    Case(
        NotAsDefined,
        updated(False, None, fault="no bias correction"),
        "updated differently: no bias correction",
    ),
    Case(RoundedAway, updated(True), HELD),
    Case(
        RoundedAway,
        updated(True, rounded_away=0.5, dtype=torch.bfloat16),
        "because bfloat16 cannot hold such small changes",
    ),
    Case(Unchanged, updated(True), HELD),
    Case(Unchanged, updated(True, due=False), NOTHING_TO_JUDGE),
    Case(Unchanged, updated(None, changed=False), "head.weight is the same after optimizer.step() as before"),
]
