from __future__ import annotations

import math
from pathlib import Path

from torch import nn

from harness.watch.check import HELD, NOTHING_TO_JUDGE
from harness.watch.checks.parameters.adapters import (
    AdapterFrozen,
    AdapterMissesWeights,
    AdapterSkipsLayers,
    AdapterTargetsAbsent,
    AdapterUntrained,
)
from harness.watch.checks.parameters.copies import (
    CopyAlsoTrained,
    CopyFollowsTooFast,
    CopySharesMemory,
    CopyWithoutBuffers,
)
from harness.watch.checks.parameters.copy_never_follows import CopyNeverFollows
from harness.watch.checks.parameters.freezes_nothing import FreezesNothing
from harness.watch.checks.parameters.new_head_frozen import NewHeadFrozen
from harness.watch.checks.parameters.new_tokens_frozen import NewTokensFrozen
from harness.watch.checks.parameters.not_registered import NotRegistered
from harness.watch.checks.parameters.observations.new_heads import NewHead
from harness.watch.checks.parameters.observations.new_tokens import NewTokens
from harness.watch.checks.parameters.observations.written_parameters import FrozenFollowed, LeftByUpdate, StartFollowed
from harness.watch.checks.parameters.written import FrozenChanged, ModifiedOutsideOptimizer, Reset
from harness.watch.events import Position
from harness.watch.facts.adapters import AdaptedWeights, AdapterPattern, AdaptersActive, AdapterTargets
from harness.watch.facts.called_models import ModelCalled
from harness.watch.facts.copies import CopyFollowed, CopyFound, CopyOver
from harness.watch.facts.parameters import LooseTensors
from tests.checks.judging import Case

FOLDER = Path(__file__).parent / "copy-never-follows"
BAD, GOOD = (f"{FOLDER / name}.py:9" for name in ("bad", "good"))


def frozen_by_attribute() -> nn.Module:
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    model[0].requires_grad = False  # type: ignore[assignment]
    return model


def copy(where: str = BAD, *, updates: int = 60, follows: bool = False, apart: bool = True) -> CopyOver:
    return CopyOver(updates=updates, follows=follows, apart=apart, where=where)


CASES = [
    Case(AdapterFrozen, AdaptersActive(), HELD),
    Case(AdapterFrozen, AdaptersActive(held=False), NOTHING_TO_JUDGE),
    Case(AdapterFrozen, AdaptersActive(frozen=["default"]), "the adapter 'default' is frozen in all training passes"),
    Case(AdapterSkipsLayers, AdapterPattern(adapted=4), HELD),
    Case(
        AdapterSkipsLayers,
        AdapterPattern(adapted=2, skipped=["layers.1.q"]),
        "skips 1 module named like the 2 adapted ones except for the numbers: layers.1.q",
    ),
    Case(AdapterMissesWeights, AdaptedWeights(adapted=["shared.down_proj"]), HELD),
    Case(
        AdapterMissesWeights,
        AdaptedWeights(adapted=["shared.down_proj"], missed=["experts.down_proj"]),
        "1 have an adapter (shared.down_proj), and 1 have none: experts.down_proj",
    ),
    Case(AdapterTargetsAbsent, AdapterTargets(matched=["q_proj"]), HELD),
    Case(
        AdapterTargetsAbsent,
        AdapterTargets(matched=["q_proj"], absent=["gate"]),
        "1 of 2 names in target_modules of the adapter 'default' matches no module: gate; matched: q_proj",
    ),
    Case(AdapterUntrained, AdaptersActive(active=["one"]), HELD),
    Case(AdapterUntrained, AdaptersActive(active=["one"], never={"two": "lora_B"}), "'two' was never trained"),
    Case(CopyAlsoTrained, CopyFollowed(weights=[0.1] * 2, steps=9), NOTHING_TO_JUDGE),
    Case(CopyAlsoTrained, CopyFollowed(weights=[0.1] * 3), HELD),
    Case(
        CopyAlsoTrained,
        CopyFollowed(weights=[0.1] * 3, steps=3),
        "target moves towards the network by 0.1 of the distance each time",
    ),
    Case(CopyFollowsTooFast, CopyFollowed(weights=[0.9] * 4), NOTHING_TO_JUDGE),
    Case(CopyFollowsTooFast, CopyFollowed(weights=[0.01] * 5), HELD),
    Case(CopyFollowsTooFast, CopyFollowed(weights=[1.0] * 5), HELD),
    Case(CopyFollowsTooFast, CopyFollowed(weights=[0.6, 0.7, 0.8, 0.9, 0.95]), HELD),
    Case(CopyFollowsTooFast, CopyFollowed(weights=[0.99] * 5), "target is set to 0.99 of the network and 0.01 of"),
    Case(CopySharesMemory, CopyFound(), HELD),
    Case(CopySharesMemory, CopyFound(shares=True), "so the copy never lags behind"),
    Case(CopyWithoutBuffers, CopyOver(has_norms=True, follows=True, updates=20), HELD),
    Case(CopyWithoutBuffers, CopyOver(has_norms=True, follows=True, updates=19), NOTHING_TO_JUDGE),
    Case(CopyWithoutBuffers, CopyOver(updates=60, stale="train.py:9"), "the buffers are not copied"),
    Case(CopyNeverFollows, copy(follows=True), HELD),
    Case(CopyNeverFollows, copy(updates=49), NOTHING_TO_JUDGE),
    Case(CopyNeverFollows, copy(apart=False), NOTHING_TO_JUDGE),
    Case(CopyNeverFollows, CopyOver(updates=60, where=BAD, at=Position(complete=False)), NOTHING_TO_JUDGE),
    Case(CopyNeverFollows, copy(GOOD), NOTHING_TO_JUDGE),
    Case(CopyNeverFollows, copy(), "target never changed in 60 updates of the network"),
    Case(FreezesNothing, ModelCalled(model=nn.Linear(2, 2)), HELD),
    Case(FreezesNothing, ModelCalled(model=frozen_by_attribute()), "0.requires_grad = False, which freezes nothing"),
    Case(NewHeadFrozen, NewHead(tensors=["head.weight"], stays_random=False), HELD),
    Case(NewHeadFrozen, NewHead(tensors=["head.weight"], stays_random=True), "head.weight are random and frozen"),
    Case(NewTokensFrozen, NewTokens(before=100, given=7), HELD),
    Case(NewTokensFrozen, NewTokens(before=100, given=8, trained=True), HELD),
    Case(NewTokensFrozen, NewTokens(before=100, given=8, taught=4, places=16), "never trained; 25% of the targets"),
    Case(NotRegistered, LooseTensors(), HELD),
    Case(
        NotRegistered,
        LooseTensors(shapes=[(2, 3)]),
        "a parameter of shape (2, 3) gets gradients but is in no module and no optimizer",
    ),
    Case(NotRegistered, LooseTensors(shapes=[(2,), (3,)]), "2 parameters, the first of shape (2,)"),
    Case(FrozenChanged, FrozenFollowed(), HELD),
    Case(
        FrozenChanged,
        FrozenFollowed(changed="a.weight of Net"),
        "scales or clips frozen parameters between two updates",
    ),
    Case(FrozenChanged, FrozenFollowed(changed="a.weight", by="the optimizer"), "the optimizer changed a.weight"),
    Case(ModifiedOutsideOptimizer, LeftByUpdate(apart=1e-8, largest=1.0), HELD),
    Case(ModifiedOutsideOptimizer, LeftByUpdate(apart=0.5, largest=1.0, clamped=True), HELD),
    Case(ModifiedOutsideOptimizer, LeftByUpdate(apart=math.nan, largest=1.0), HELD),
    Case(CopyFollowsTooFast, CopyFollowed(weights=[math.nan] * 5), HELD),
    Case(
        ModifiedOutsideOptimizer,
        LeftByUpdate(apart=0.5, largest=1.0, name="a.weight"),
        "a.weight has changed by up to 0.5 since the previous update",
    ),
    Case(Reset, StartFollowed(), HELD),
    Case(
        Reset, StartFollowed(set_back=True, name="a.weight"), "a.weight has the same values as before the first update"
    ),
]
