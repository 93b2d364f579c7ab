from __future__ import annotations

import torch

from harness.watch.check import HELD, NOTHING_TO_JUDGE
from harness.watch.checks.groups.decay import DecayNotExempt, DecayTooStrong
from harness.watch.checks.groups.first_step import DuplicateParameters, UnknownKey
from harness.watch.checks.groups.observations.exempt_from_decay import DecayExempted
from harness.watch.checks.groups.rates import RatesMadeAlike
from harness.watch.events import StepBegins
from tests.checks.judging import Case, values

WEIGHT, BIAS = torch.zeros(2, 2), torch.zeros(2)


def step(*groups: dict[str, object], number: int = 1, sampled: bool = True, lr: float = 1e-3) -> StepBegins:
    optimizer = torch.optim.AdamW(groups or [{"params": [WEIGHT, BIAS]}], lr=lr)
    return StepBegins(optimizer, number, number, sampled, "train.py:9", made="train.py:3")


TWICE = step({"params": [WEIGHT]})
TWICE.optimizer.param_groups.append({**TWICE.optimizer.param_groups[0]})

CASES = [
    Case(RatesMadeAlike, values(made=[1e-4, 1e-2], first=1e-2, steps=9, alike=8), HELD),
    Case(RatesMadeAlike, values(made=[1e-4, 1e-2], first=1e-2, steps=4, alike=4), NOTHING_TO_JUDGE),
    Case(
        RatesMadeAlike,
        values(made=[1e-4, 1e-2], first=5e-3, steps=9, alike=9),
        "in all 9 steps they have one rate, 0.005",
    ),
    Case(DecayNotExempt, DecayExempted(), HELD),
    Case(DecayNotExempt, DecayExempted(decayed=["norm.weight"]), "norm.weight is decayed"),
    Case(DecayNotExempt, DecayExempted(decayed=["a.bias", "b.bias", "c.bias"]), "a.bias and 2 more are decayed"),
    Case(DecayTooStrong, step({"params": [WEIGHT], "weight_decay": 0.01}), HELD),
    Case(DecayTooStrong, step({"params": [WEIGHT], "weight_decay": 0.0}), NOTHING_TO_JUDGE),
    Case(DecayTooStrong, step({"params": [WEIGHT], "weight_decay": 1.0}, lr=0.1, sampled=False), NOTHING_TO_JUDGE),
    Case(
        DecayTooStrong,
        step({"params": [WEIGHT], "weight_decay": 0.01}, {"params": [BIAS], "weight_decay": 1.0}, lr=0.1),
        "weight_decay=1 at a learning rate of 0.1 takes 10%",
    ),
    Case(DuplicateParameters, step(), HELD),
    Case(DuplicateParameters, step(number=2), NOTHING_TO_JUDGE),
    Case(DuplicateParameters, TWICE, "1 tensor is in the optimizer more than once"),
    Case(UnknownKey, step(), HELD),
    Case(UnknownKey, step(number=2), NOTHING_TO_JUDGE),
    Case(UnknownKey, step({"params": [WEIGHT], "name": "head"}), HELD),
    Case(
        UnknownKey,
        step({"params": [WEIGHT], "learning_rate": 1e-4}),
        "a parameter group has 'learning_rate', which is ignored",
    ),
    Case(UnknownKey, step({"params": [WEIGHT], "weigth_decay": 0.0}), "'weight_decay' stays 0.01"),
]
