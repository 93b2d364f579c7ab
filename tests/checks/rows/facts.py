from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset, WeightedRandomSampler

from harness.watch.check import HELD, NOTHING_TO_JUDGE, NothingToJudge
from harness.watch.checks.rows.augmented_alike import AugmentedAlike
from harness.watch.checks.rows.epochs import (
    EpochCutShort,
    FirstBatchAgain,
    GivenByEachWorker,
    RepeatedOrSkipped,
    RestNeverReached,
    SkippedInEachEpoch,
    WeightsOfClasses,
)
from harness.watch.checks.rows.evaluation import EvaluatedOnTrainingRows, EvaluationAugmented
from harness.watch.checks.rows.in_place import ChangedInPlace
from harness.watch.checks.rows.incomplete import EvaluationIncomplete
from harness.watch.checks.rows.labels import LabelsOfOtherRows, LoadersApart
from harness.watch.checks.rows.order import DrawnAlike, RandomStateSetBack, SameOrderEachEpoch
from harness.watch.checks.rows.shuffled_apart import ShuffledApart
from harness.watch.checks.rows.slices import TailNeverSeen, TestRowsInLoss
from harness.watch.checks.rows.states import StateOfOtherRows
from harness.watch.checks.rows.target_alone import TargetChangesAlone
from harness.watch.checks.rows.windows import WindowsOverlap
from harness.watch.events import Pass, Position
from harness.watch.facts.carried_states import ShuffledRowsGiven
from harness.watch.facts.loaders import LossOfTwoLoaders
from harness.watch.run.passes import Alike, Beginning, BegunAnew, PassesOver, PassOver
from tests.checks.judging import Case, values

ROWS = TensorDataset(torch.arange(64.0))
IN_ORDER, SHUFFLED = DataLoader(ROWS, batch_size=8), DataLoader(ROWS, batch_size=8, shuffle=True)
SKIPPING: Any = SimpleNamespace(batch_sampler=SimpleNamespace(skip_batches=2), dataset=ROWS)
CUT = Position(9, 8, complete=False)


class Stream(IterableDataset[int]):
    def __iter__(self) -> Iterator[int]:
        yield from ()  # a fact says what came of it


class Halved(Dataset[float]):
    """Gives half of its rows, each twice."""

    def __init__(self) -> None:
        self.rows = list(range(64))

    def __len__(self) -> int:
        return 64

    def __getitem__(self, index: int) -> float:
        return self.rows[index // 2]


def epoch(loader: Any = SHUFFLED, *, trains: bool = True, batches: int = 8, exhausted: bool = True) -> Pass:
    return Pass(loader, 1, 8, "train.py:9", batches=batches, exhausted=exhausted, trains=trains)


def training(of: Pass | None = None, count: int = 2, **about: Any) -> PassesOver:
    of = of or epoch()
    return PassesOver(training=[Alike(of, of, count)], **about)


def over(loader: Any, rows: Counter[bytes] | None = None, at: dict[int, bytes] | None = None) -> PassOver:
    beginning = Beginning("train.py:9", rows=rows or Counter(), at=at or {})
    return PassOver(of=epoch(loader), beginning=beginning, where="train.py:9")


def rows_of(*numbers: int) -> Counter[bytes]:
    return Counter(str(number).encode() for number in numbers)


ANEW, SAME_ANEW = BegunAnew(6, "train.py:9", same=False), BegunAnew(6, "train.py:9", same=True)
LEFT, LEFT_IN_ORDER = epoch(batches=4, exhausted=False), epoch(IN_ORDER, batches=4, exhausted=False)
STREAM = DataLoader(Stream(), batch_size=8, num_workers=2)
BY_CLASS = DataLoader(ROWS, sampler=WeightedRandomSampler([0.5, 0.5], 64))
BY_ROW = DataLoader(ROWS, sampler=WeightedRandomSampler([0.5] * 64, 64))
HALVED = DataLoader(Halved(), batch_size=8)
OF_HALVED = {index: str(index // 2).encode() for index in range(64)}

NOT_ALL = "more rows were trained on, or evaluated, than are remembered"
MEANT = "8 of 8 evaluated rows were trained on, which may be meant"

CASES = [
    Case(AugmentedAlike, values(owners=[("Noise", "random")], workers=0), HELD),
    Case(AugmentedAlike, values(owners=[("Noise", "random")], workers=2), "2 workers each have a copy of Noise.random"),
    Case(TargetChangesAlone, values(again=20, changed=4), HELD),
    Case(TargetChangesAlone, values(again=15, changed=15), NOTHING_TO_JUDGE),
    Case(TargetChangesAlone, values(again=20, changed=19), NothingToJudge("the targets are drawn anew each time")),
    Case(TargetChangesAlone, values(again=20, changed=5), "5 of 20 rows that came again with the same input"),
    Case(WindowsOverlap, values(rows=50, overlapping=24, length=12), HELD),
    Case(WindowsOverlap, values(rows=50, overlapping=45, length=12), "45 of the 50 windows of 12 steps"),
    Case(EpochCutShort, training(), HELD),
    Case(EpochCutShort, training(LEFT), NOTHING_TO_JUDGE),
    Case(EpochCutShort, training(LEFT, left_early=LEFT), "the loop leaves each epoch after 4 batches"),
    Case(EpochCutShort, training(LEFT, left_early=LEFT_IN_ORDER), NOTHING_TO_JUDGE),
    Case(EpochCutShort, training(LEFT, left_early=LEFT, at=CUT), NOTHING_TO_JUDGE),
    Case(EpochCutShort, training(LEFT, begun_anew=ANEW), "the script started 6 passes and left each after one batch"),
    Case(FirstBatchAgain, training(), HELD),
    Case(FirstBatchAgain, training(at=CUT), NOTHING_TO_JUDGE),
    Case(FirstBatchAgain, PassesOver(), NOTHING_TO_JUDGE),
    Case(FirstBatchAgain, training(begun_anew=ANEW), HELD),
    Case(FirstBatchAgain, training(begun_anew=SAME_ANEW), "the same one each time"),
    Case(GivenByEachWorker, over(STREAM, rows_of(*range(64))), HELD),
    Case(GivenByEachWorker, over(STREAM, rows_of(*range(8))), NOTHING_TO_JUDGE),
    Case(GivenByEachWorker, over(SHUFFLED, rows_of(*range(64))), NOTHING_TO_JUDGE),
    Case(
        GivenByEachWorker,
        over(STREAM, rows_of(*range(32), *range(32))),
        "an epoch of 64 rows has only 32 different ones",
    ),
    Case(RepeatedOrSkipped, over(HALVED, rows_of(*range(8))), NOTHING_TO_JUDGE),
    Case(RepeatedOrSkipped, over(SHUFFLED, rows_of(*range(64))), NOTHING_TO_JUDGE),
    Case(
        RepeatedOrSkipped,
        over(HALVED, rows_of(*range(32), *range(32)), OF_HALVED),
        "an epoch of 64 rows has only 32 different ones",
    ),
    Case(RepeatedOrSkipped, training(rows_seen=32), HELD),
    Case(RepeatedOrSkipped, training(rows_seen=31), NOTHING_TO_JUDGE),
    Case(
        RepeatedOrSkipped,
        training(rows_seen=32, some_twice=True),
        NothingToJudge("no rule in the rows that came twice"),
    ),
    Case(RestNeverReached, training(), HELD),
    Case(RestNeverReached, training(at=CUT), NOTHING_TO_JUDGE),
    Case(RestNeverReached, training(left_early=LEFT), HELD),
    Case(RestNeverReached, training(left_early=LEFT_IN_ORDER, drawn_anew=True), HELD),
    Case(RestNeverReached, training(left_early=LEFT_IN_ORDER), "after 4 batches, so the rows after that are never"),
    Case(SkippedInEachEpoch, training(), HELD),
    Case(SkippedInEachEpoch, training(count=1), NOTHING_TO_JUDGE),
    Case(SkippedInEachEpoch, training(epoch(SKIPPING)), "every epoch skips its first 2 batches"),
    Case(WeightsOfClasses, over(BY_ROW), HELD),
    Case(WeightsOfClasses, over(SHUFFLED), NOTHING_TO_JUDGE),
    Case(WeightsOfClasses, over(BY_CLASS), "the sampler has 2 weights, so it draws only the first 2 rows"),
    Case(EvaluatedOnTrainingRows, values(rows=8, trained=0), HELD),
    Case(EvaluatedOnTrainingRows, values(rows=8, trained=8), "all of the 8 evaluation rows were trained on"),
    Case(EvaluatedOnTrainingRows, values(rows=8, trained=0, by_content=True), HELD),
    Case(EvaluatedOnTrainingRows, values(rows=8, trained=0, all_known=False), NothingToJudge(NOT_ALL)),
    Case(EvaluatedOnTrainingRows, values(rows=8, trained=8, by_content=True, meant=True), NothingToJudge(MEANT)),
    Case(
        EvaluatedOnTrainingRows,
        values(rows=60, trained=20, by_content=True),
        "20 of the 60 evaluation rows were",
    ),
    Case(
        EvaluatedOnTrainingRows,
        values(rows=8, trained=3, carried=True),
        "3 of the 8 evaluation rows were trained on in another split",
    ),
    Case(EvaluationAugmented, values(rows=0, changed=0), HELD),
    Case(EvaluationAugmented, values(rows=8, changed=7, shares_dataset=True), NOTHING_TO_JUDGE),
    Case(EvaluationAugmented, values(rows=8, changed=8), NOTHING_TO_JUDGE),
    Case(EvaluationAugmented, values(rows=8, changed=3, moved=True), "3 of the 8 rows"),
    Case(
        EvaluationAugmented,
        values(rows=8, changed=8, shares_dataset=True),
        "8 of the 8 rows of the first batch have changed by the next evaluation",
    ),
    Case(EvaluationIncomplete, values(rows=8, batches=2, forwards=2), HELD),
    Case(EvaluationIncomplete, values(rows=None, exhausted=False), NOTHING_TO_JUDGE),
    Case(EvaluationIncomplete, values(rows=9, dropped=1), "drop_last leaves out 1 of 9 rows"),
    Case(EvaluationIncomplete, values(rows=None, batches=4, forwards=3), "was called for 3 of 4 batches"),
    Case(EvaluationIncomplete, values(rows=None, with_replacement=True), "the rows are drawn with replacement"),
    Case(EvaluationIncomplete, values("judge_left", planned=4), "the loop stops after the first batch"),
    Case(ChangedInPlace, values(dataset="Rows", again=4), HELD),
    Case(ChangedInPlace, values(dataset="Rows", again=3, changed=3), NOTHING_TO_JUDGE),
    Case(ChangedInPlace, values(dataset="Rows", again=3), NOTHING_TO_JUDGE),
    Case(ChangedInPlace, values(dataset="Rows", again=9, changed=5), NOTHING_TO_JUDGE),
    Case(
        ChangedInPlace,
        values(dataset="Rows", again=9, otherwise=5),
        NothingToJudge("rows come otherwise the second time, as augmented ones do"),
    ),
    Case(
        ChangedInPlace,
        values(dataset="Rows", again=4, changed=4),
        "all 4 rows that came a second time had changed in the data of Rows",
    ),
    Case(LabelsOfOtherRows, values(rows=8, swapped=0), HELD),
    Case(LabelsOfOtherRows, values("judge_slices", rows=8, wrong=6, in_a_row=2), HELD),
    Case(
        LabelsOfOtherRows,
        values("judge_slices", rows=8, wrong=6, in_a_row=3),
        "6 of 8 rows have a different label: the rows are picked by an index",
    ),
    Case(LabelsOfOtherRows, values(rows=8, swapped=6), "6 of 8 rows of a batch have the label of another"),
    Case(LabelsOfOtherRows, values("judge_texts", rows=24, wrong=6), HELD),
    Case(LabelsOfOtherRows, values("judge_texts", rows=24, wrong=7), "7 of 24 rows have the label of another row"),
    Case(LabelsOfOtherRows, values("judge_workers"), NothingToJudge("samples are made in workers")),
    Case(LoadersApart, LossOfTwoLoaders(apart=2), HELD),
    Case(
        LoadersApart,
        LossOfTwoLoaders(apart=3, inputs="1, 2", targets="5, 7"),
        "the model gets rows 1, 2, but the loss gets targets of rows 5",
    ),
    Case(RandomStateSetBack, values(seed=7, before=None, times=0, update=9), HELD),
    Case(RandomStateSetBack, values(seed=7, before=20, times=1, update=29), HELD),
    Case(RandomStateSetBack, values(seed=7, before=20, times=2, update=29), "as it was before update 20"),
    Case(DrawnAlike, values(rows=64, times=2), HELD),
    Case(DrawnAlike, values(rows=64, times=3), "the same permutation of 64 rows 3 times in a row"),
    Case(SameOrderEachEpoch, values(loader=SHUFFLED, same_order=False), HELD),
    Case(SameOrderEachEpoch, values(loader=IN_ORDER, same_order=True), "(SequentialSampler)"),
    Case(
        SameOrderEachEpoch,
        values(loader=SHUFFLED, same_order=True, in_vain=True),
        "though the sampler drew another permutation",
    ),
    Case(
        SameOrderEachEpoch,
        values("judge_batches", batches=8),
        "the script trains on the 8 batches of one pass again and again",
    ),
    Case(TailNeverSeen, values(rows=100, left=0, epochs=3, longest=32), HELD),
    Case(TailNeverSeen, values(rows=100, left=1, epochs=3, longest=32), HELD),
    Case(TailNeverSeen, values(rows=100, left=4, epochs=3, longest=32), "the last 4 of 100 rows were never"),
    Case(TestRowsInLoss, values(name="test", rows=8, both=0, trained=64), HELD),
    Case(
        TestRowsInLoss,
        values(name="test", rows=8, both=8, trained=64, pseudo=True),
        NothingToJudge("the labels of the held-out rows in the loss are a model's predictions, not their own"),
    ),
    Case(
        TestRowsInLoss,
        values(name="test", rows=8, both=8, trained=64),
        "8 of the 8 rows of test are among the 64 rows in the loss",
    ),
    Case(ShuffledApart, values(apart=None), HELD),
    Case(
        ShuffledApart,
        values(apart="lines 3 and 4 shuffle x and y by different permutations"),
        "rows and labels no longer belong",
    ),
    Case(StateOfOtherRows, ShuffledRowsGiven(), HELD),
    Case(StateOfOtherRows, ShuffledRowsGiven(state=(1, 8, 4)), "a state of shape (1, 8, 4)"),
]
