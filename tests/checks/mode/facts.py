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
    Case(EvaluationInTrainMode, EvaluatedInTrainMode(active=2), "2 of its dropout or normalisation modules work"),
    Case(EvaluationInTrainMode, EvaluatedByHand(active=1), "the model is in train mode, and 1 of its dropout"),
    Case(EvaluationWithGraph, evaluated(4, 8), HELD),
    Case(EvaluationWithGraph, EvaluatedWithGraph(), "a graph for a backward pass that never comes"),
    Case(EvaluationWithGraph, EvaluatedByHandInGraph(), "a graph for a backward pass that never comes"),
    Case(FrozenNormDrifts, FrozenNorms(frozen=2), HELD),
    Case(FrozenNormDrifts, FrozenNorms(frozen=2, drifting=1, updates=3), HELD),
    Case(FrozenNormDrifts, FrozenNorms(frozen=2, drifting=1, updates=4), "1 of 2 frozen ones are in train mode"),
    Case(TeacherInTrainMode, TeacherAnswered(teacher="Net", updates=4), HELD),
    Case(TeacherInTrainMode, TeacherAnswered(teacher="Net", dropouts=1, updates=3), HELD),
    Case(
        TeacherInTrainMode,
        TeacherAnswered(teacher="Net", norms=2, dropouts=1, updates=4),
        "is in train mode: batch normalisation in 2 places and dropout in 1 places",
    ),
    Case(TrainingInEvalMode, TrainedThrough(training=True), HELD),
    Case(
        TrainingInEvalMode,
        UpdatedInEvalMode(model="Net", sensitive=2, validates=False),
        "Net is in eval mode: none of its 2 dropout or normalisation modules works",
    ),
    Case(TrainingInEvalMode, UpdatedInEvalMode(model="Net", sensitive=2, validates=True), "updates in the validation?"),
]
