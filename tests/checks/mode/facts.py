from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from harness.watch.check import HELD, NOTHING_TO_JUDGE, NothingToJudge
from harness.watch.checks.mode.evaluation import NO_EVALUATION, EvaluationInTrainMode, EvaluationWithGraph
from harness.watch.checks.mode.observations.evaluations_by_hand import EvaluatedByHand
from harness.watch.checks.mode.observations.training_modes import (
    FrozenNorms,
    TeacherAnswered,
    TrainedThrough,
    UpdatedInEvalMode,
)
from harness.watch.checks.mode.training import FrozenNormDrifts, TeacherInTrainMode, TrainingInEvalMode
from harness.watch.events import Pass
from harness.watch.run.evaluations import Evaluation, FirstCall
from tests.checks.judging import Case

LOADER: Any = SimpleNamespace(dataset=range(8))
FIRST = FirstCall(training=False, active=0, gradients=False, where="train.py:20")
ACTIVE = FirstCall(training=True, active=2, gradients=False, where="train.py:20")
WITH_GRAPH = FirstCall(training=False, active=0, gradients=True, where="train.py:20")
RENEWING = FirstCall(training=True, active=2, gradients=False, where="train.py:20", norms=True)


def evaluated(first: FirstCall = FIRST, batches: int = 4, forwards: int = 4, **said: Any) -> Evaluation:
    of = Pass(LOADER, 1, 4, "train.py:19", batches=batches, forwards=forwards)
    return Evaluation(model=1, first=first, of=of, **said)


def by_hand(first: FirstCall, *, scored: bool = True) -> Evaluation:
    """Of rows of no loader; a wrong one is judged as an EvaluatedByHand."""
    return Evaluation(model=1, first=first, scored=scored)


CASES = [
    Case(EvaluationInTrainMode, evaluated(), HELD),
    Case(EvaluationInTrainMode, evaluated(ACTIVE), "with 2 active dropout or normalisation modules"),
    Case(EvaluationInTrainMode, evaluated(ACTIVE, forwards=8), NO_EVALUATION),
    Case(EvaluationInTrainMode, evaluated(ACTIVE, batches=1, forwards=1), NO_EVALUATION),
    Case(EvaluationInTrainMode, evaluated(ACTIVE, of_training_loader=True), NO_EVALUATION),
    Case(EvaluationInTrainMode, evaluated(ACTIVE, alike=3), NO_EVALUATION),
    Case(EvaluationInTrainMode, evaluated(RENEWING, then_in_eval_mode=True), NO_EVALUATION),
    Case(EvaluationInTrainMode, by_hand(FIRST), HELD),
    Case(EvaluationInTrainMode, by_hand(FIRST, scored=False), NO_EVALUATION),
    Case(EvaluationInTrainMode, by_hand(ACTIVE), NO_EVALUATION),
    Case(EvaluationInTrainMode, evaluated(RENEWING, then_in_eval_mode=True, scored=True), "2 active"),
    Case(EvaluationInTrainMode, Evaluation(model=1, first=ACTIVE), NO_EVALUATION),
    Case(EvaluationInTrainMode, EvaluatedByHand(first=FIRST), HELD),
    Case(EvaluationInTrainMode, EvaluatedByHand(first=ACTIVE), "the model is in train mode, with 2 active"),
    Case(EvaluationWithGraph, evaluated(forwards=8), HELD),
    Case(EvaluationWithGraph, evaluated(WITH_GRAPH), "which no backward pass uses"),
    Case(EvaluationWithGraph, by_hand(FIRST), HELD),
    Case(EvaluationWithGraph, by_hand(WITH_GRAPH), NO_EVALUATION),
    Case(EvaluationWithGraph, evaluated(WITH_GRAPH, of_training_loader=True), NO_EVALUATION),
    Case(EvaluationWithGraph, EvaluatedByHand(first=WITH_GRAPH), "which no backward pass uses"),
    Case(EvaluationWithGraph, EvaluatedByHand(first=WITH_GRAPH, often=False), NOTHING_TO_JUDGE),
    Case(EvaluationWithGraph, EvaluatedByHand(first=FIRST, often=False), HELD),
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
        TrainedThrough(training=False),
        NothingToJudge("dropout and normalisation may be in eval mode on purpose"),
    ),
    Case(
        TrainingInEvalMode,
        UpdatedInEvalMode(model="Net", sensitive=2, validates=False),
        "Net is in eval mode, and so are its 2 dropout or normalisation modules",
    ),
    Case(TrainingInEvalMode, UpdatedInEvalMode(model="Net", sensitive=2, validates=True), "updates in the validation?"),
]
