from __future__ import annotations

from typing import Any

import torch

from harness.watch.check import HELD, NOTHING_TO_JUDGE, NothingToJudge
from harness.watch.checks.metrics.by_hand import (
    Broadcast,
    LabelsOnAnotherScale,
    RankedByClasses,
    ThresholdOfProbabilities,
)
from harness.watch.checks.metrics.forced import ScoredWithTargetsGiven
from harness.watch.checks.metrics.generated import GeneratedTooShort
from harness.watch.checks.metrics.library import (
    MicroF1IsAccuracy,
    Misaligned,
    RowsMissingOrRepeated,
    WrongPredictions,
)
from harness.watch.checks.metrics.mean_of_means import MeanOfMeans
from harness.watch.checks.metrics.observations.answers import (
    LabelsCompared,
    LogitsThresholded,
    PredictionsInPairs,
    Ranked,
)
from harness.watch.checks.metrics.observations.batch_means import BatchMeans
from harness.watch.checks.metrics.observations.metric_calls import Computed, OtherRowsScored
from harness.watch.checks.metrics.observations.numbers_of_ranks import NumberOfRanks
from harness.watch.checks.metrics.reported import MeanOfBatches, NotANumber, OfOtherRows, OtherThanNamed
from harness.watch.checks.metrics.scaled import OfScaledTargets
from harness.watch.checks.metrics.thresholds import ThresholdFromScoredRows
from harness.watch.events import Forward, Pass, Scored
from harness.watch.facts.formula import formula
from harness.watch.facts.reported_numbers import NumberReported
from tests.checks.judging import Case, values

PASS = Pass(None, 1, None, None)  # type: ignore[arg-type]
LOGITS = torch.tensor([[4.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, 6.0]])
"""Of which the likeliest classes are 0, 1, 0, 1."""
LABELS = [0, 1, 1, 1]


def computed(predictions: list[int], references: list[int] = LABELS, **others: Any) -> Computed:
    told = {"metric": "accuracy", "rows": len(references), "labels": LABELS, **others}
    return Computed(predictions=predictions, references=references, of=PASS, logits=LOGITS, **told)


def f1(average: str) -> Computed:
    return computed([0, 1, 0, 1], metric="f1", options={"average": average})


def scored(rows: int) -> Scored:
    return Scored(Forward(1, torch.nn.Linear(2, 1), (), {}, torch.zeros(rows, 1)))


def in_pairs(sign: str) -> PredictionsInPairs:
    return PredictionsInPairs(sign=sign, predictions=torch.Size((50, 1)), labels=torch.Size((50,)))


def compared(labels: float, predicted: float = 1.0) -> LabelsCompared:
    return LabelsCompared(predicted=torch.full((8,), predicted), labels=torch.full((8,), labels), trained=(0.5, 2.0))


def ranked(*scores: float) -> Ranked:
    return Ranked(metric="roc_auc_score", scores=scores, references=[0, 1] * (len(scores) // 2))


SHARE = formula("share", over="hits", hits=15, targets=20)
LAST = formula("last-batch", hits=2, rows=4)
MEAN = formula("mean-of-accuracies", batches=5)


def reported(**told: Any) -> NumberReported:
    return NumberReported(**{"name": "accuracy", "number": 0.5, "right": 0.75, **told})


CASES = [
    Case(GeneratedTooShort, values(rows=16, cut=7, limit=20, longest=40), HELD),
    Case(GeneratedTooShort, values(rows=15, cut=15, limit=20, longest=40), NOTHING_TO_JUDGE),
    Case(GeneratedTooShort, values(rows=16, cut=8, limit=20, longest=40), "8 of 16 texts are cut off at 20 tokens"),
    *(
        Case(
            OfScaledTargets,
            values(name="mae", number=0.4, scaler="StandardScaler", unit=unit, scaled_back=back),
            verdict,
        )
        for unit, back, verdict in (
            (60.0, True, HELD),
            (1.5, False, NothingToJudge("the scaler hardly changes the scale of the targets")),
            (60.0, False, "1 stands for 60 of theirs"),
        )
    ),
    Case(NotANumber, values(name="val loss", is_nan=False), HELD),
    Case(NotANumber, values(name="val loss", is_nan=True), "val loss is NaN"),
    Case(ScoredWithTargetsGiven, values(rows=16, name="bleu", writes=True), HELD),
    Case(ScoredWithTargetsGiven, values(rows=15, name="bleu", writes=False), NOTHING_TO_JUDGE),
    Case(ScoredWithTargetsGiven, values(rows=16, name="", writes=False), NOTHING_TO_JUDGE),
    Case(ScoredWithTargetsGiven, values(rows=16, name="bleu", writes=False), "in each of 16 evaluated rows"),
    Case(ThresholdFromScoredRows, values(tried=10, chosen=False), HELD),
    Case(ThresholdFromScoredRows, values(tried=9, chosen=True), NOTHING_TO_JUDGE),
    Case(
        ThresholdFromScoredRows, values(tried=10, chosen=True), "10 thresholds were tried on the labels of these rows"
    ),
    Case(OfOtherRows, reported(), NOTHING_TO_JUDGE),
    Case(OfOtherRows, reported(formula=SHARE), HELD),
    Case(OfOtherRows, reported(formula=formula("training-loss", over="batch")), NOTHING_TO_JUDGE),
    Case(OfOtherRows, NumberOfRanks(name="accuracy", number=0.5, rounds=2, ranks=2, formula=SHARE), HELD),
    Case(
        OfOtherRows,
        NumberOfRanks(name="accuracy", number=0.5, rounds=2, ranks=2, mistake=formula("rank-alone", SHARE), right=0.6),
        "0.5, which is that of rank 0 alone, 15 of 20 targets, in 2 reports",
    ),
    Case(OfOtherRows, reported(mistake=LAST, rounds=3), "0.5, which is that of the last batch alone, 2 of its 4, in 3"),
    Case(OtherThanNamed, reported(formula=SHARE), NOTHING_TO_JUDGE),
    Case(OtherThanNamed, reported(name="rmse", formula=formula("root-mean-square", targets=20)), HELD),
    Case(
        OtherThanNamed,
        reported(mistake=formula("exchanged-recall", formula("macro")), group="name"),
        "which is the recall",
    ),
    Case(OtherThanNamed, reported(mistake=LAST), NOTHING_TO_JUDGE),
    Case(MeanOfBatches, reported(name="loss", formula=formula("mean", targets=20)), NOTHING_TO_JUDGE),
    Case(MeanOfBatches, reported(formula=SHARE), HELD),
    Case(
        MeanOfBatches,
        reported(mistake=MEAN, group="batches", off=0.4),
        NothingToJudge("as a mean of batches the number is hardly another, with batches of nearly one size"),
    ),
    Case(
        MeanOfBatches,
        reported(mistake=MEAN, group="batches", off=1.5),
        "which is the mean of the accuracies of 5 batches",
    ),
    Case(MicroF1IsAccuracy, f1("macro"), HELD),
    Case(MicroF1IsAccuracy, f1("micro"), "average='micro' makes F1 equal to accuracy"),
    Case(MicroF1IsAccuracy, computed([0, 1, 0, 1]), NOTHING_TO_JUDGE),
    Case(Misaligned, computed([0, 1, 0, 1]), HELD),
    Case(Misaligned, computed(LABELS, [0, 1, 0, 1]), "predictions and references are swapped"),
    Case(
        Misaligned, computed([0, 1, 0, 1], [1, 1, 0, 1]), "the references are in a different order from the predictions"
    ),
    Case(Misaligned, computed([1, 0, 1, 0]), "the predictions are in a different order from the references"),
    Case(Misaligned, computed([0, 1], rows=2), NOTHING_TO_JUDGE),
    Case(WrongPredictions, computed([0, 1, 0, 1]), HELD),
    Case(WrongPredictions, computed([0, 1, 1, 1]), HELD),
    Case(WrongPredictions, computed([1, 1, 0, 1]), "1 of 4 predictions are a different class"),
    Case(WrongPredictions, computed([1, 1, 0, 1], agreed=torch.tensor([-1, 1, 0, 1])), HELD),
    Case(WrongPredictions, computed([1, 1, 0, 1], of_classes=False), NOTHING_TO_JUDGE),
    Case(RowsMissingOrRepeated, computed([0, 1, 0, 1]), HELD),
    Case(RowsMissingOrRepeated, OtherRowsScored(rows=64, given=8), "only 8 rows"),
    Case(RowsMissingOrRepeated, OtherRowsScored(rows=64, given=72), "72 rows"),
    Case(RowsMissingOrRepeated, OtherRowsScored(rows=64, given=72, gathered=True), "72"),
    Case(Broadcast, scored(8), HELD),
    Case(Broadcast, scored(7), NOTHING_TO_JUDGE),
    Case(Broadcast, in_pairs("=="), "which the comparison == broadcasts: each prediction is compared with every label"),
    Case(Broadcast, in_pairs("-"), "which the subtraction broadcasts: every label is subtracted from each prediction"),
    Case(LabelsOnAnotherScale, compared(2.0), HELD),
    Case(LabelsOnAnotherScale, compared(100.0, predicted=100.0), HELD),
    Case(LabelsOnAnotherScale, compared(100.0), "labels whose root mean square is 100"),
    Case(LabelsOnAnotherScale, LabelsCompared(predicted=torch.zeros(8)), HELD),
    Case(RankedByClasses, ranked(*range(16)), HELD),
    Case(RankedByClasses, ranked(*[0, 1] * 8), "roc_auc_score is given 16 rows whose only values are 0 and 1"),
    Case(RankedByClasses, ranked(0, 1), NOTHING_TO_JUDGE),
    Case(ThresholdOfProbabilities, LogitsThresholded(threshold=0.0), HELD),
    Case(ThresholdOfProbabilities, LogitsThresholded(threshold=0.5), "are compared with 0.5"),
    Case(MeanOfMeans, BatchMeans(means=[1.0, 2.0, 3.0], targets=[10, 20, 30]), HELD),
    Case(
        MeanOfMeans,
        BatchMeans(means=[1.0, 2.0, 3.0], targets=[10, 20, 30], reported=True),
        "the mean of 3 batch means, 2, from batches with 10 to 30 targets each",
    ),
]
