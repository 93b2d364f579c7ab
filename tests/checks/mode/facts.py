from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from harness.watch.check import HELD, NOTHING_TO_JUDGE
from harness.watch.checks.mode.evaluation import EvaluationInTrainMode, EvaluationWithGraph
from harness.watch.checks.mode.training import FrozenNormDrifts, TeacherInTrainMode, TrainingInEvalMode
from harness.watch.events import Pass
from harness.watch.facts.evaluation_modes import EvaluatedInTrainMode, EvaluatedWithGraph
from harness.watch.facts.evaluations_by_hand import EvaluatedByHand, EvaluatedByHandInGraph
from harness.watch.facts.modes import FirstForward, PassEvaluated
from harness.watch.facts.training_modes import FrozenNorms, TeacherAnswered, TrainedThrough, UpdatedInEvalMode
from tests.checks.judging import Case

LOADER: Any = SimpleNamespace(dataset=range(8))
FIRST = FirstForward(training=False, active=0, gradients=False, where="train.py:20")


def evaluated(batches: int, forwards: int) -> PassEvaluated:
    of = Pass(LOADER, 1, batches, "train.py:19", batches=batches, forwards=forwards)
    return PassEvaluated(of=of, first=FIRST)


CASES = [
    Case(EvaluationInTrainMode, evaluated(4, 4), HELD),
    Case(EvaluationInTrainMode, evaluated(4, 8), NOTHING_TO_JUDGE),
    Case(EvaluationInTrainMode, EvaluatedInTrainMode(active=2), "with 2 active dropout or normalisation modules"),
    Case(
        EvaluationInTrainMode,
        EvaluatedByHand(active=1),
        "the model is in train mode, with 1 active dropout or normalisation module",
    ),
    Case(EvaluationWithGraph, evaluated(4, 8), HELD),
    Case(EvaluationWithGraph, EvaluatedWithGraph(), "which no backward pass uses"),
    Case(EvaluationWithGraph, EvaluatedByHandInGraph(), "which no backward pass uses"),
    Case(FrozenNormDrifts, FrozenNorms(frozen=2), HELD),
    Case(FrozenNormDrifts, FrozenNorms(frozen=2, drifting=1, updates=3), HELD),
    Case(
        FrozenNormDrifts,
        FrozenNorms(frozen=2, drifting=1, updates=4),
        "1 of 2 frozen batch normalisation layers are in train mode",
    ),
    Case(TeacherInTrainMode, TeacherAnswered(teacher="Net", updates=4), HELD),
    Case(TeacherInTrainMode, TeacherAnswered(teacher="Net", dropouts=1, updates=3), HELD),
    Case(
        TeacherInTrainMode,
        TeacherAnswered(teacher="Net", norms=2, dropouts=1, updates=4),
        "is in train mode, with 2 batch normalisation layers and 1 dropout layer",
    ),
    Case(TrainingInEvalMode, TrainedThrough(training=True), HELD),
    Case(
        TrainingInEvalMode,
        UpdatedInEvalMode(model="Net", sensitive=2, validates=False),
        "Net is in eval mode, and so are its 2 dropout or normalisation modules",
    ),
    Case(TrainingInEvalMode, UpdatedInEvalMode(model="Net", sensitive=2, validates=True), "updates in the validation?"),
]
