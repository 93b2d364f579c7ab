from __future__ import annotations

import torch

from harness.watch.check import HELD, NOTHING_TO_JUDGE
from harness.watch.checks.gradients.accumulation import (
    AccumulationNotEntered,
    AccumulationUnscaled,
    LeftOver,
    MicroBatchesWeighUnlike,
    SameRowsAccumulated,
)
from harness.watch.checks.gradients.clearing import Lost, NotCleared
from harness.watch.checks.gradients.clipping import (
    ClippedInPart,
    ClippedWhileScaled,
    ClippedWithUnused,
    ClipsNothing,
    MisplacedClipping,
)
from harness.watch.checks.gradients.observations.lost_gradients import GradientsLost
from harness.watch.checks.gradients.observations.micro_batches import (
    FirstWindowOfPass,
    MicroBatchesUsed,
    SameRowsAdded,
    UncountedLossUsed,
)
from harness.watch.checks.gradients.observations.unheld_gradients import ClippedWithUnheld
from harness.watch.checks.gradients.scaling import NotScaled, NotUnscaled
from harness.watch.events import Clip, Position
from harness.watch.facts.accelerators import AcceleratorAccumulates
from harness.watch.facts.gradient_ledger import (
    GradientsAdded,
    GradientsCleared,
    GradientsClipped,
    GradientsUnscaled,
    GradientsUsed,
)
from harness.watch.facts.ledger import Contribution
from tests.checks.judging import Case

SGD = torch.optim.SGD([torch.zeros(1)], lr=0.1)
FIRST, SECOND = Contribution(1, "train.py:7", used=1), Contribution(2, "train.py:7")
USED = GradientsUsed(optimizer=SGD, number=2, fresh=[SECOND], at=Position(update=2))
FIRST_STEP = GradientsUsed(optimizer=SGD, fresh=[SECOND])
EMPTY = GradientsUsed(optimizer=SGD, number=2, fresh=[SECOND], empty=True)
CLIPS = GradientsClipped()


def used_in_step(number: int, **values: object) -> GradientsUsed:
    return GradientsUsed(optimizer=SGD, number=number, **{"fresh": [SECOND], **values})  # type: ignore[arg-type]


CASES = [
    Case(SameRowsAccumulated, SameRowsAdded(times=4, updates=1), NOTHING_TO_JUDGE),
    Case(SameRowsAccumulated, SameRowsAdded(times=4, updates=3), "4 backward passes with the same rows in each of 3"),
    Case(SameRowsAccumulated, MicroBatchesUsed(shares=[0.5, 0.5]), HELD),
    Case(MicroBatchesWeighUnlike, MicroBatchesUsed(shares=[0.5, 0.5], targets=[10, 12]), NOTHING_TO_JUDGE),
    Case(MicroBatchesWeighUnlike, MicroBatchesUsed(shares=[0.5, 0.5]), NOTHING_TO_JUDGE),
    Case(MicroBatchesWeighUnlike, MicroBatchesUsed(shares=[0.25, 0.75], targets=[10, 30]), HELD),
    Case(
        MicroBatchesWeighUnlike,
        MicroBatchesUsed(shares=[0.5, 0.5], targets=[10, 30]),
        "one target counts up to 3 times as much as another",
    ),
    Case(NotCleared, USED, HELD),
    Case(NotCleared, FIRST_STEP, NOTHING_TO_JUDGE),
    Case(NotCleared, EMPTY, NOTHING_TO_JUDGE),
    Case(NotCleared, used_in_step(2, stale=[FIRST]), "the gradients of update 1 were never cleared"),
    Case(NotCleared, used_in_step(2, stale=[FIRST], fresh=[]), "there was no backward pass since"),
    Case(Lost, USED, HELD),
    Case(Lost, used_in_step(2, empty=True, fresh=[]), HELD),
    Case(Lost, used_in_step(2, empty=True, used_elsewhere=True), HELD),
    Case(Lost, EMPTY, "all gradients were cleared between the backward pass and the step"),
    Case(Lost, used_in_step(2, empty=True, called=True), "optimizer.step() comes before the backward pass"),
    Case(Lost, GradientsLost(entries=[SECOND]), "1 backward pass were cleared before a step could use them"),
    Case(Lost, GradientsLost(entries=[FIRST, SECOND], partly=True), "2 backward passes were cleared and no step"),
    Case(ClippedInPart, CLIPS, HELD),
    Case(ClippedInPart, GradientsAdded(), NOTHING_TO_JUDGE),
    Case(ClippedInPart, GradientsAdded(clipped=True, of_one_batch=True), HELD),
    Case(ClippedInPart, GradientsAdded(clipped=True), "and then adds the gradients of more micro-batches"),
    Case(ClippedWhileScaled, CLIPS, HELD),
    Case(
        ClippedWhileScaled,
        GradientsClipped(scaled=True),
        "the gradients are still multiplied by the GradScaler's factor",
    ),
    Case(ClipsNothing, CLIPS, HELD),
    Case(ClipsNothing, GradientsClipped(used_up=True), "the parameter generator was already exhausted"),
    Case(MisplacedClipping, CLIPS, HELD),
    Case(MisplacedClipping, USED, NOTHING_TO_JUDGE),
    Case(MisplacedClipping, used_in_step(1, clipped_without="train.py:6"), NOTHING_TO_JUDGE),
    Case(
        MisplacedClipping,
        used_in_step(2, clipped_without="train.py:6"),
        "the script clips when there are no gradients yet",
    ),
    Case(MisplacedClipping, GradientsCleared(optimizer=SGD), NOTHING_TO_JUDGE),
    Case(
        MisplacedClipping,
        GradientsCleared(optimizer=SGD, clipped_late=Clip([], "train.py:9")),
        "the script clips after optimizer.step() used the gradients",
    ),
    Case(ClippedWithUnused, CLIPS, HELD),
    Case(
        ClippedWithUnused,
        ClippedWithUnheld(model="Net", parameters=["head.weight", "head.bias"]),
        "of Net are in no optimizer",
    ),
    Case(NotScaled, GradientsUnscaled(multiplied=True), HELD),
    Case(NotScaled, GradientsUnscaled(multiplied=False), "the loss was not scaled"),
    Case(NotUnscaled, USED, NOTHING_TO_JUDGE),
    Case(NotUnscaled, used_in_step(2, scale="taken out"), HELD),
    Case(NotUnscaled, used_in_step(2, scale="carried"), "optimizer.step() was called, not scaler.step(optimizer)"),
    Case(AccumulationUnscaled, MicroBatchesUsed(shares=[0.25] * 4), HELD),
    Case(AccumulationUnscaled, MicroBatchesUsed(shares=[1.0] * 4, divided_by_hand=4.0), HELD),
    Case(AccumulationUnscaled, MicroBatchesUsed(shares=[-1.0] * 4), HELD),
    Case(
        AccumulationUnscaled,
        MicroBatchesUsed(shares=[1.0] * 4),
        "no loss is divided, so the gradients are 4 times those of the mean loss",
    ),
    Case(AccumulationUnscaled, MicroBatchesUsed(shares=[1 / 16] * 4), "each loss is divided by 16"),
    Case(
        AccumulationUnscaled, MicroBatchesUsed(shares=[1.0, 0.25, 1.0, 0.25]), "some losses are divided, others are not"
    ),
    Case(AccumulationUnscaled, UncountedLossUsed(function="loss_of", micro_batches=4, undivided=False), HELD),
    Case(
        AccumulationUnscaled,
        UncountedLossUsed(function="loss_of", micro_batches=4, undivided=True),
        "the gradients are 4 times as large as those of one batch",
    ),
    Case(AccumulationNotEntered, AcceleratorAccumulates(micro_batches=4, entered=True), HELD),
    Case(AccumulationNotEntered, AcceleratorAccumulates(micro_batches=4, entered=False, passes=7, steps=7), HELD),
    Case(
        AccumulationNotEntered,
        AcceleratorAccumulates(micro_batches=4, entered=False, passes=8, steps=8),
        "8 updates in 8 backward passes, each with 1/4 of its loss",
    ),
    Case(LeftOver, FirstWindowOfPass(size=4, usual=4), HELD),
    Case(LeftOver, FirstWindowOfPass(size=3, left_over=1, usual=None), HELD),
    Case(
        LeftOver,
        FirstWindowOfPass(size=3, left_over=1, usual=4),
        "an update with 3 micro-batches: 1 left over from the previous epoch",
    ),
]
