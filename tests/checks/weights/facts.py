from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch
from torch import nn

from harness.watch.check import HELD, NOTHING_TO_JUDGE
from harness.watch.checks.weights.autocast import CastBeforeUpdate
from harness.watch.checks.weights.backbone_not_from_checkpoint import BackboneNotFromCheckpoint
from harness.watch.checks.weights.loaded import (
    AlreadyTrained,
    FromScratch,
    InitialisedAgain,
    LeftRandom,
    LoadedIntoAnother,
    StateKeptWithoutCopy,
    StateNotLoaded,
)
from harness.watch.checks.weights.observations.casts import CastsUsed
from harness.watch.checks.weights.observations.trainers_in_a_row import TrainerBegins
from harness.watch.checks.weights.observations.units import UnitsFollowed
from harness.watch.checks.weights.units_alike import UnitsAlike
from harness.watch.events import FromPretrained, Load
from harness.watch.facts.loaded_states import (
    CheckpointTrained,
    LoadedAfterTraining,
    LoadedUnused,
    PretrainedCalled,
    RandomWeightsUsed,
    StateLoading,
)
from tests.checks.judging import Case

LINEAR = nn.Linear(2, 2)
STATE = LINEAR.state_dict()
OTHER = {f"model.{name}": tensor for name, tensor in STATE.items()}
NAMES = [f"encoder.{number}.weight" for number in range(20)]


def pretrained(*missing: str, names: list[str] = NAMES) -> FromPretrained:
    model: Any = SimpleNamespace(named_parameters=lambda: [(name, torch.zeros(1)) for name in names])
    return FromPretrained(model, {"missing_keys": missing}, "train.py:3")


CASES = [
    Case(CastBeforeUpdate, CastsUsed(), HELD),
    Case(CastBeforeUpdate, CastsUsed(stale=3), "3 updates since autocast was entered"),
    Case(AlreadyTrained, TrainerBegins(goes_on=False, updates_before=8), HELD),
    Case(AlreadyTrained, TrainerBegins(goes_on=True, updates_before=8), "that another Trainer left after 8 updates"),
    Case(BackboneNotFromCheckpoint, pretrained("encoder.0.weight"), HELD),
    Case(BackboneNotFromCheckpoint, pretrained(names=[]), NOTHING_TO_JUDGE),
    Case(BackboneNotFromCheckpoint, pretrained(*NAMES), "20 of the backbone's 20 tensors are newly initialised"),
    Case(FromScratch, PretrainedCalled(), HELD),
    Case(FromScratch, PretrainedCalled(configured="hub/bert-base"), "BertModel was made from the configuration alone"),
    Case(InitialisedAgain, CheckpointTrained(tensors=4, changed=2), HELD),
    Case(InitialisedAgain, CheckpointTrained(tensors=4, changed=3), "3 of 4 tensors looked at have changed since"),
    Case(LeftRandom, LoadedAfterTraining(), HELD),
    Case(
        LeftRandom,
        RandomWeightsUsed(model="Net", tensors=["head.weight"]),
        "head.weight of Net are not in what was loaded",
    ),
    Case(LoadedIntoAnother, Load(LINEAR, STATE), HELD),
    Case(LoadedIntoAnother, Load(LINEAR, {}), NOTHING_TO_JUDGE),
    Case(
        LoadedIntoAnother,
        LoadedUnused(model="Net"),
        "the state was loaded into another Net, which was never used afterwards",
    ),
    Case(StateKeptWithoutCopy, StateLoading(of_model=False), HELD),
    Case(StateKeptWithoutCopy, StateLoading(of_model=True), "the state shares its memory with the model"),
    Case(
        StateKeptWithoutCopy,
        StateLoading(of_model=True, kept_at="train.py:8", where="train.py:9"),
        "so it changed with every update, and train.py:9 loads it",
    ),
    Case(StateNotLoaded, Load(LINEAR, STATE), HELD),
    Case(StateNotLoaded, Load(torch.optim.SGD(LINEAR.parameters(), lr=0.1), {"state": {}}), NOTHING_TO_JUDGE),
    Case(
        StateNotLoaded,
        Load(LINEAR, OTHER, strict=False, unexpected=[*OTHER]),
        "0 of the state's 2 tensors match Linear",
    ),
    Case(UnitsAlike, UnitsFollowed(), HELD),
    Case(
        UnitsAlike,
        UnitsFollowed(layer="0 of Net", units=8),
        "the 8 units of layer 0 of Net started with equal weights and are still equal",
    ),
]
