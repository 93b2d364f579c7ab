from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch

from harness.watch.check import HELD, NOTHING_TO_JUDGE
from harness.watch.checks.loss.candidates import RightAmongWrong
from harness.watch.checks.loss.ends import TargetPastTheEnd
from harness.watch.checks.loss.forwards import DifferentiatedAgain, OfEarlierForward
from harness.watch.checks.loss.given import HalfPrecision, NotRawLogits
from harness.watch.checks.loss.noised import TargetIsNoised
from harness.watch.checks.loss.observations.candidates import CandidatesScored
from harness.watch.checks.loss.observations.class_weights import Weighted
from harness.watch.checks.loss.observations.loss_terms import TermAdded, TermReaches
from harness.watch.checks.loss.observations.loss_values import (
    LossOverBatches,
    NotFiniteLossUnused,
    NotFiniteLossUsed,
    ProbabilityRatio,
)
from harness.watch.checks.loss.observations.rows_of_loss import LabelsOfLoss
from harness.watch.checks.loss.observations.same_losses import LossesSummed
from harness.watch.checks.loss.observations.term_values import TermOverTraining, WeightOfTerm
from harness.watch.checks.loss.rows import OfAnotherBatch, OfSomeRows
from harness.watch.checks.loss.shapes import AxesMixed, Broadcast, FlattenedApart
from harness.watch.checks.loss.targets import (
    BlankTaught,
    ClassIgnored,
    SmoothedTwice,
    TargetsNotProbabilities,
    TargetsNotSigns,
    TargetsTruncated,
    TooShortForTargets,
)
from harness.watch.checks.loss.terms import (
    LeftOut,
    TermAlwaysZero,
    TermOfUntrainedParameters,
    TermTwice,
    TermWithoutGradient,
    WeightRoundedToZero,
)
from harness.watch.checks.loss.values import Constant, NotFinite, RatioAlwaysOne
from harness.watch.checks.loss.weights import WeightsForFrequentClasses, WeightsOfOtherClasses
from harness.watch.events import (
    AlignmentLoss,
    Backward,
    Batch,
    Forward,
    LossCall,
    Pass,
    Position,
    SignedLoss,
    TrainerMade,
)
from harness.watch.facts.graphs import ForwardsDifferentiated, LossReaches
from harness.watch.facts.loss_inputs import (
    DifferenceInPairs,
    DifferenceOfRows,
    LossesWeighted,
    LossInput,
    RegressionTargets,
    TargetsIgnored,
)
from harness.watch.facts.losses import LossDifferentiated
from tests.checks.judging import Case, values

LINEAR = torch.nn.Linear(2, 3)
ROWS_OF_PLACES = LINEAR(torch.zeros(2, 4, 2))
"""Logits of shape (2, 4, 3): two rows of four places, with three classes."""


def call(function: str, given: torch.Tensor, target: Any = (), *, sampled: bool = True, **options: Any) -> LossCall:
    at = Position(sampled=sampled)
    return LossCall(function, given, torch.as_tensor(target), options, given, None, "train.py:7", at=at)


def aligned(*targets: int, blank: int = 0, places: int = 9, sampled: bool = True) -> AlignmentLoss:
    """Two rows, of which the second has one target less."""
    rows = torch.tensor(targets).reshape(2, -1)
    lengths = rows.shape[1], rows.shape[1] - 1
    return AlignmentLoss(rows, lengths, (places, places), blank, None, at=Position(sampled=sampled))


def smoothed(*target: float, smoothing: float = 0.1) -> LossCall:
    targets = torch.tensor([target])
    return call("cross_entropy", torch.zeros(1, len(target)), targets, label_smoothing=smoothing)


def signed(*target: int) -> SignedLoss:
    return SignedLoss("margin_ranking_loss", torch.tensor(target), "train.py:7")


def differentiated(*reached: int, loader: bool = True) -> Backward:
    """A backward pass after the forwards 3 and 4."""
    batch = Batch(Pass(None, 1, None, None), 1, None, None, None, None) if loader else None  # type: ignore[arg-type]
    forwards = [Forward(number, LINEAR, (), {}, None, gradients=True) for number in (3, 4)]
    return Backward(2, torch.zeros(()), 1.0, (), forwards, batch, "train.py:8", reached=frozenset(reached))


def trainer(smoothing: float) -> TrainerMade:
    return TrainerMade(SimpleNamespace(args=SimpleNamespace(label_smoothing_factor=smoothing)), "train.py:3")


def ignoring(times: int, ignored: int = 9) -> TargetsIgnored:
    return TargetsIgnored(index=0, classes=5, targets=16, ignored=ignored, between=6, times=times)


def of_shares(weights: list[float], shares: list[float], *, of_positives: bool = False) -> Weighted:
    return Weighted(weights=torch.tensor(weights), shares=torch.tensor(shares), of_positives=of_positives)


CHOSEN_WEIGHTS = of_shares([1.0, 5.0, 0.1], [0.7, 0.2, 0.1])
"""Of no power of the shares, in no order."""

LABELS = torch.zeros(2, 4, dtype=torch.long)
PLACES_FIRST = LINEAR(torch.zeros(4, 2, 2)).reshape(-1, 3)
"""Logits of (8, 3), of four places of two rows."""

CASES = [
    Case(TargetPastTheEnd, values(ended=20, past=17), HELD),
    Case(TargetPastTheEnd, values(ended=7, past=7), NOTHING_TO_JUDGE),
    Case(TargetPastTheEnd, values(ended=20, past=18), "the targets of 18 of 20 such transitions include"),
    Case(TargetIsNoised, values(again=20, noised=19), HELD),
    Case(TargetIsNoised, values(again=15, noised=15), NOTHING_TO_JUDGE),
    Case(TargetIsNoised, values(again=0, noised=0, others=True), HELD),
    Case(TargetIsNoised, values(again=20, noised=20), "for each of 20 rows with other noise in each epoch"),
    Case(RightAmongWrong, CandidatesScored(rows=64, twice=32, batches=4), NOTHING_TO_JUDGE),
    Case(RightAmongWrong, CandidatesScored(rows=80, twice=9, batches=5), HELD),
    Case(RightAmongWrong, CandidatesScored(rows=80, twice=10, batches=5), "in 10 of 80 rows another candidate"),
    Case(AxesMixed, call("cross_entropy", ROWS_OF_PLACES.movedim(-1, 1)), HELD),
    Case(AxesMixed, call("cross_entropy", ROWS_OF_PLACES.view(2, 3, 4)), "which mixes up positions and classes"),
    Case(AxesMixed, call("cross_entropy", torch.zeros(2, 3, 4)), HELD),
    Case(AxesMixed, call("cross_entropy", torch.zeros(2, 3)), NOTHING_TO_JUDGE),
    Case(FlattenedApart, call("cross_entropy", PLACES_FIRST, LABELS.t().contiguous().reshape(-1)), HELD),
    Case(
        FlattenedApart,
        call("cross_entropy", PLACES_FIRST, LABELS.reshape(-1)),
        "labels (2, 4) are flattened as they are",
    ),
    Case(FlattenedApart, call("cross_entropy", PLACES_FIRST, torch.zeros(8).long()), NOTHING_TO_JUDGE),
    Case(FlattenedApart, call("mse_loss", PLACES_FIRST, LABELS.reshape(-1)), NOTHING_TO_JUDGE),
    Case(Broadcast, call("mse_loss", torch.zeros(16, 1), torch.zeros(16, 1)), HELD),
    Case(Broadcast, call("mse_loss", torch.zeros(16), torch.zeros(())), HELD),
    Case(
        Broadcast,
        call("mse_loss", torch.zeros(16, 1), torch.zeros(16)),
        "targets of shape (16,), which mse_loss broadcasts",
    ),
    Case(Broadcast, call("cross_entropy", torch.zeros(16, 2), torch.zeros(16)), NOTHING_TO_JUDGE),
    Case(
        Broadcast,
        DifferenceInPairs(outputs=torch.Size((16, 1)), targets=torch.Size((16,))),
        "which the subtraction broadcasts",
    ),
    Case(Broadcast, DifferenceOfRows(), HELD),
    Case(
        Broadcast,
        LossesWeighted(losses=torch.Size((16,)), weights=torch.Size((16, 1))),
        "weights of shape (16, 1), which the product broadcasts",
    ),
    Case(BlankTaught, aligned(1, 2, 3, 2, 1, 0), HELD),
    Case(BlankTaught, aligned(1, 2, 3, 2, 0, 0), "1 of the 5 targets are 0"),
    Case(BlankTaught, aligned(1, 2, 3, 2, 1, 0, blank=3), "1 of the 5 targets are 3"),
    Case(BlankTaught, aligned(1, 2, 3, 2, 0, 0, sampled=False), NOTHING_TO_JUDGE),
    Case(TooShortForTargets, aligned(1, 2, 3, 2, 1, 0), HELD),
    Case(TooShortForTargets, aligned(1, 2, 3, 2, 1, 0, places=2), HELD),
    Case(TooShortForTargets, aligned(1, 2, 3, 2, 1, 0, places=1), "2 of 2 rows have fewer"),
    Case(TooShortForTargets, aligned(1, 2, 3, 2, 1, 0, sampled=False), NOTHING_TO_JUDGE),
    Case(TermTwice, LossesSummed(), HELD),
    Case(TermTwice, LossesSummed(same="cross_entropy", times=1), HELD),
    Case(TermTwice, LossesSummed(same="cross_entropy", times=2), "cross_entropy is computed a second time"),
    Case(SmoothedTwice, smoothed(0.01, 0.01, 0.01, 0.97), "label_smoothing=0.1"),
    Case(SmoothedTwice, smoothed(0.0, 0.0, 0.0, 1.0), HELD),
    Case(SmoothedTwice, smoothed(0.1, 0.2, 0.3, 0.4), HELD),
    Case(SmoothedTwice, smoothed(0.01, 0.01, 0.01, 0.97, smoothing=0.0), NOTHING_TO_JUDGE),
    Case(SmoothedTwice, smoothed(0.01, 0.01, 0.98), NOTHING_TO_JUDGE),
    Case(HalfPrecision, call("cross_entropy", torch.zeros(2, 300)), HELD),
    Case(HalfPrecision, call("cross_entropy", torch.zeros(2, 300).bfloat16()), "is computed in bfloat16"),
    Case(HalfPrecision, call("cross_entropy", torch.zeros(2, 3).bfloat16()), NOTHING_TO_JUDGE),
    Case(NotRawLogits, LossInput(function="cross_entropy"), HELD),
    Case(NotRawLogits, LossInput(function="cross_entropy", instead="probabilities", numbers=4), HELD),
    Case(NotRawLogits, LossInput(function="cross_entropy", instead="probabilities", numbers=8), "is given probabilit"),
    Case(
        NotRawLogits, LossInput(function="kl_div", instead="probabilities", numbers=8), "kl_div is given probabilities"
    ),
    Case(
        NotRawLogits, LossInput(function="kl_div", takes_logits=False, instead="a softmax", numbers=2), NOTHING_TO_JUDGE
    ),
    Case(TargetsNotProbabilities, call("binary_cross_entropy", torch.zeros(2), [0.0, 1.0]), HELD),
    Case(TargetsNotProbabilities, call("binary_cross_entropy", torch.zeros(2), [0.1, 1.9]), HELD),
    Case(TargetsNotProbabilities, call("binary_cross_entropy", torch.zeros(2), [1.0, 2.0]), "targets from 1 to 2"),
    Case(
        TargetsNotProbabilities,
        call("binary_cross_entropy", torch.zeros(2), [1.0, 2.0], reduction="none"),
        NOTHING_TO_JUDGE,
    ),
    Case(TargetsNotSigns, signed(1, -1, 0), HELD),
    Case(TargetsNotSigns, signed(1, 0, 0), "2 of the 3 targets given to margin_ranking_loss are 0, and none is -1"),
    Case(TargetsNotSigns, signed(), NOTHING_TO_JUDGE),
    Case(ClassIgnored, ignoring(times=2), HELD),
    Case(ClassIgnored, ignoring(times=0, ignored=0), NOTHING_TO_JUDGE),
    Case(
        ClassIgnored,
        ignoring(times=3),
        "ignore_index=0 leaves 9 of 16 targets out of the loss, 6 of them in the middle of a row",
    ),
    Case(TargetsTruncated, RegressionTargets(function="mse_loss"), HELD),
    Case(TargetsTruncated, RegressionTargets(function="mse_loss", value=0.0, batches=6, rows=24), HELD),
    Case(TargetsTruncated, RegressionTargets(function="mse_loss", value=0.0, batches=6, rows=48), "0 for each of 48"),
    Case(DifferentiatedAgain, ForwardsDifferentiated(), HELD),
    Case(DifferentiatedAgain, ForwardsDifferentiated(again=2, at=Position(sampled=False)), HELD),
    Case(
        DifferentiatedAgain,
        ForwardsDifferentiated(again=2),
        "backward() again goes through 2 forward passes of earlier batches",
    ),
    Case(OfEarlierForward, differentiated(2, 4), HELD),
    Case(OfEarlierForward, differentiated(1, 2), "comes from an earlier batch's forward pass"),
    Case(OfEarlierForward, differentiated(1, 2, loader=False), NOTHING_TO_JUDGE),
    Case(OfAnotherBatch, LabelsOfLoss(rows=8, given=8), HELD),
    Case(OfAnotherBatch, LabelsOfLoss(rows=8, given=8, others="the labels of other rows", others_in_a_row=1), HELD),
    Case(
        OfAnotherBatch,
        LabelsOfLoss(rows=8, given=8, others="the labels of other rows", others_in_a_row=2),
        "the loss function is given the labels of other rows",
    ),
    Case(OfSomeRows, LabelsOfLoss(rows=8, given=4, partial_in_a_row=1), HELD),
    Case(
        OfSomeRows, LabelsOfLoss(rows=8, given=4, partial_in_a_row=2), "the loss function is given only 4 of the 8 rows"
    ),
    Case(LeftOut, LossReaches(function="cross_entropy"), HELD),
    Case(LeftOut, LossReaches(function="mse_loss", untrained="head.weight of Net"), "reaches head.weight of Net, but"),
    Case(TermAlwaysZero, TermOverTraining(zeros=-112, times=12), HELD),
    Case(TermAlwaysZero, TermOverTraining(zeros=8, times=11), HELD),
    Case(
        TermAlwaysZero,
        TermOverTraining(zeros=8, times=12),
        "the term added here is exactly 0 in all 8 updates looked at",
    ),
    Case(TermOfUntrainedParameters, TermReaches(tensors=2), HELD),
    Case(TermOfUntrainedParameters, TermReaches(tensors=1, untrained="w of Copy", times=1), HELD),
    Case(TermOfUntrainedParameters, TermReaches(tensors=1, untrained="w of Copy", times=2), "no optimizer holds it"),
    Case(TermWithoutGradient, TermAdded(), HELD),
    Case(TermWithoutGradient, TermAdded(constants={1.0, 2.0, 3.0}), HELD),
    Case(TermWithoutGradient, TermAdded(constants={1.0, 2.0, 3.0, 4.5}), "it was 1, 2, 3, 4.5 in 4 batches"),
    Case(WeightRoundedToZero, WeightOfTerm(zeros=20), HELD),
    Case(WeightRoundedToZero, WeightOfTerm(zeros=20, rounded="epoch // 5"), "`epoch // 5` rounds it down"),
    Case(Constant, LossOverBatches(value=0.7, varied=True), HELD),
    Case(Constant, LossOverBatches(value=0.0, varied=False, of_one_class=True), HELD),
    Case(Constant, LossOverBatches(value=0.7, varied=False), "the loss was exactly 0.7 for 5 batches"),
    Case(Constant, call("cross_entropy", torch.zeros(2, 2)), NOTHING_TO_JUDGE),
    Case(Constant, call("cross_entropy", torch.zeros(2, 2), label_smoothing=1.0), "label_smoothing=1.0 gives all"),
    Case(Constant, call("cross_entropy", torch.zeros(2, 1)), "the cross-entropy has only one class"),
    Case(Constant, call("cross_entropy", torch.zeros(2, 1), sampled=False), NOTHING_TO_JUDGE),
    Case(Constant, trainer(0.1), NOTHING_TO_JUDGE),
    Case(Constant, trainer(1.0), "label_smoothing_factor=1.0"),
    Case(NotFinite, LossDifferentiated(value=float("nan")), HELD),
    Case(NotFinite, NotFiniteLossUsed(value=float("nan")), "the loss is nan"),
    Case(NotFinite, NotFiniteLossUnused(value=float("inf")), "the loss is inf, and no update is made"),
    Case(RatioAlwaysOne, ProbabilityRatio(rows=32, ones=3), HELD),
    Case(
        RatioAlwaysOne,
        ProbabilityRatio(rows=32, ones=4),
        "the ratio is exactly 1 for all 32 rows in 4 repeated updates on the same rows",
    ),
    Case(WeightsForFrequentClasses, CHOSEN_WEIGHTS, HELD),
    Case(WeightsOfOtherClasses, CHOSEN_WEIGHTS, HELD),
    Case(WeightsForFrequentClasses, of_shares([1.0, 9.0], [0.9, 0.1]), HELD),
    Case(WeightsForFrequentClasses, of_shares([9.0, 1.0], [0.9, 0.1]), "which rise with the shares"),
    Case(WeightsForFrequentClasses, of_shares([9.0], [0.1], of_positives=True), HELD),
    Case(
        WeightsForFrequentClasses,
        of_shares([1 / 9], [0.1], of_positives=True),
        "pos_weight of 0.11, which is the inverse",
    ),
    Case(WeightsOfOtherClasses, of_shares([1.0, 9.0], [0.9, 0.1]), HELD),
    Case(WeightsOfOtherClasses, of_shares([9.0, 1.0], [0.9, 0.1]), "the right values in the wrong order"),
    Case(WeightsOfOtherClasses, of_shares([9.0], [0.1], of_positives=True), NOTHING_TO_JUDGE),
]
