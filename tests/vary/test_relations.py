"""What two starts differ in, and what relations say of it, by starts that are made by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from harness.starts.journal import BatchTrained, End, Journal, Loaded, Saved, Update
from harness.vary.account import Account, LoaderUsed, ReportedNumber
from harness.vary.change import label_of, other_size
from harness.vary.differences import MUCH, Another, Run, numbers_apart, parting, series, steady
from harness.vary.relation import Outcome, Tried
from harness.vary.relations.depends.on_an_earlier_run import OnAnEarlierRun
from harness.vary.relations.depends.on_evaluation_batches import OnEvaluationBatches
from harness.vary.relations.depends.on_held_out_rows import OnHeldOutRows
from harness.vary.relations.independent.of_held_out_rows import OfHeldOutRows
from harness.vary.relations.independent.of_the_seed import OfTheSeed
from harness.vary.relations.independent.of_training_labels import OfTrainingLabels
from harness.vary.run import _judged
from harness.watch.checks.metrics import reported

EVALUATED = LoaderUsed(
    2, "train.py:4", 32, True, 4, 100, trains=False, evaluates=True, labels=(60, 40), exchangeable=True
)
TRAINED = LoaderUsed(1, "train.py:3", 32, False, 9, 280, trains=True, evaluates=False, exchangeable=True)


def update(at: int, **changes: Any) -> Update:
    made = Update(
        at=at,
        batches=(BatchTrained(1, (at, at + 1), f"content {at}"),),
        losses=((0.5).hex(),),
        lr=(0.1,),
        options={"optimizer": "SGD"},
        scale=1.0,
        skipped=0,
        weights={"weight": f"{at}"},
        state={},
        gradients={},
        random={},
        modes="",
        where="train.py:9",
    )
    return replace(made, **changes)


def said(
    value: float, name: str = "test accuracy", half: float = 0.0005, *, percent: bool = False, at: int = 2
) -> ReportedNumber:
    return ReportedNumber(name, value, half, percent, "train.py:20", at)


def run(*numbers: ReportedNumber, updates: tuple[Update, ...] = (update(1), update(2)), **account: Any) -> Run:
    journal = Journal(updates=list(updates), end=End({"weight": "end"}))
    return Run(journal, Account(numbers, (TRAINED, EVALUATED), ("torch",), **account), 1.0)


def tried(first: Run, again: Run | None = None, *arguments: str, text: str = "") -> Tried:
    return Tried("train.py", arguments, first, again or first, text)


@pytest.mark.parametrize(
    ("changes", "part", "what"),
    [
        ({"batches": (BatchTrained(1, (7, 8), "other"),)}, "rows", "rows 2, 3 … and 7, 8 …"),
        ({"batches": (BatchTrained(1, (2, 3), "other"),)}, "contents", "the values of the same rows"),
        ({"lr": (0.05,)}, "rates", "a learning rate of 0.1 and 0.05"),
        ({"weights": {"weight": "other"}}, "weights", "weight"),
        ({"losses": ((0.25).hex(),)}, "losses", "a loss of 0.5 and 0.25"),
    ],
)
def test_where_two_trainings_part(changes: dict[str, Any], part: str, what: str) -> None:
    found = parting(run(), run(updates=(update(1), update(2, **changes))))
    assert found is not None
    assert (found.part, found.update, found.what) == (part, 2, what)


def test_trainings_of_unlike_length_and_unlike_ends() -> None:
    longer = parting(run(), run(updates=(update(1), update(2), update(3))))
    assert longer is not None
    assert (longer.part, longer.update) == ("number of updates", 3)
    other = run()
    other.journal.end = End({"weight": "another"})
    assert (end := parting(run(), other)) is not None
    assert end.what == "at the end, weight"
    assert parting(run(), other, ("rows",)) is None
    assert parting(run(), run()) is None


@pytest.mark.parametrize(
    ("one", "other", "apart"),
    [
        (said(0.8), said(0.8), False),
        (said(0.8), said(0.801), False),  # a unit of the last digit
        (said(0.8), said(0.815), False),  # less than half a standard error of 100 rows
        (said(0.8), said(0.83), True),
        (said(80.0, percent=True), said(83.0, percent=True), True),
        (said(80.0), said(81.5), False),
        (said(0.7, "val loss", 0.00005), said(0.7031, "val loss"), False),
        (said(0.7, "val loss", 0.00005), said(0.71, "val loss"), True),
    ],
)
def test_by_how_much_a_number_may_be_another(one: ReportedNumber, other: ReportedNumber, apart: bool) -> None:
    found = numbers_apart(series(run(one)), run(other), rows=100)
    assert (found is not None) == apart


def test_the_measure_is_that_of_the_check() -> None:
    """Which no relation may import."""
    assert MUCH == reported.MUCH


def test_only_what_two_equal_starts_report_alike_is_compared() -> None:
    first, again = run(said(0.8), said(0.5, "test loss")), run(said(0.8), said(0.6, "test loss"))
    same, unsteady = steady(first, again)
    assert [name for name, _ in same] == ["test accuracy"]
    assert unsteady is not None
    assert unsteady.name == "test loss"
    assert tried(first, again).numbers_apart(run(said(0.8), said(9.0, "test loss"))) is None
    both = tried(run(said(0.8)), run(said(0.7))).numbers_apart(run(said(0.1)))
    assert isinstance(both, Outcome)
    assert both.why == "two unchanged runs report a different test accuracy (train.py:20): seed the random numbers"


def test_a_number_that_is_not_reported_is_no_number_that_is_the_same() -> None:
    silent = tried(run(said(0.8))).numbers_apart(run())
    assert isinstance(silent, Outcome)
    assert silent.result == "did not apply"


def test_loaders_that_are_made_in_another_order_are_not_taken_for_each_other() -> None:
    base, other = tried(run(said(0.8))), run(said(0.8))
    assert _judged(OnEvaluationBatches, base, other).result == "held"
    turned = replace(other.account, loaders=(replace(EVALUATED, number=1), replace(TRAINED, number=2)))
    assert _judged(OnEvaluationBatches, base, replace(other, account=turned)).result == "did not apply"


def test_the_loss_of_an_evaluation_by_trainer_is_its_own() -> None:
    first = run(said(0.5, "eval_loss"), said(0.8, "eval_accuracy"), has_trainer=True)
    other = run(said(0.6, "eval_loss"), said(0.8, "eval_accuracy"), has_trainer=True)
    outcome = OnEvaluationBatches.judge(tried(first), other)
    assert (outcome.result, outcome.why[:40]) == ("held", "except for Trainer's own eval_loss, in w")
    by_hand = run(said(0.5, "eval_loss")), run(said(0.6, "eval_loss"))
    assert isinstance(tried(by_hand[0]).numbers_apart(by_hand[1]), Another)


def test_what_is_chosen_is_no_fault_and_what_is_learned_is() -> None:
    base = tried(run(said(0.8)))
    slower = run(said(0.8), updates=(update(1), update(2, lr=(0.05,))), labels=100, exchanged=50)
    chosen = OnHeldOutRows.judge(base, slower)
    assert chosen.why == (
        "the script chooses its learning rate by the held-out rows (update 2); it reports its score on the same rows"
    )
    learned = run(updates=(update(1), update(2, weights={"weight": "x"})), labels=100, exchanged=50)
    found = OnHeldOutRows.judge(base, learned)
    assert (found.result, found.observed, found.update) == ("broken", "other weights in update 2 (weight)", 2)
    alike = OnHeldOutRows.judge(base, run(labels=100, exchanged=0))
    assert alike.why == "all labels of a batch are the same"


@pytest.mark.parametrize(
    ("exchanged", "fits", "score", "result"),
    [
        (50, (80.0, 55.0), 0.8, "broken"),
        (50, (80.0, 55.0), 0.7, "held"),
        (50, (60.0, 60.0), 0.8, "did not apply"),
        (50, (None, None), 0.8, "did not apply"),
        (5, (80.0, 79.0), 0.8, "did not apply"),
    ],
)
def test_a_score_that_knows_no_labels(
    exchanged: int, fits: tuple[float | None, float | None], score: float, result: str
) -> None:
    other = run(said(score), labels=100, exchanged=exchanged, fit=fits[1])
    assert OfHeldOutRows.judge(tried(run(said(0.8), fit=fits[0])), other).result == result


@pytest.mark.parametrize(
    ("before", "after", "result"),
    [(0.9, 0.89, "broken"), (0.9, 0.8, "held"), (0.9, 0.62, "held"), (0.66, 0.66, "did not apply")],
)
def test_a_score_that_knows_no_training(before: float, after: float, result: str) -> None:
    updates = update(1), update(2, weights={"weight": "of other labels"})
    other = run(said(after), updates=updates, labels=280, exchanged=130)
    assert OfTrainingLabels.judge(tried(run(said(before))), other).result == result


def test_a_training_without_labels_is_no_evidence() -> None:
    outcome = OfTrainingLabels.judge(tried(run(said(0.9))), run(said(0.9), labels=280, exchanged=130))
    assert outcome.why == "the training does not use the labels of its batches"


def test_what_a_second_run_goes_on_from_is_said() -> None:
    first, second = run(), run(updates=(update(1, weights={"weight": "2"}),))
    first.journal.saves = [Saved(1, 2, 0, "out/model.pt", {}, weights=True, where="train.py:30", done=True)]
    assert OnAnEarlierRun.judge(tried(first), second).result == "broken"
    second.journal.loads = [Loaded("file", 0, "train.py:5", "out/model.pt")]
    outcome = OnAnEarlierRun.judge(tried(first), second)
    assert outcome.why == "it continues from out/model.pt (train.py:5); harness resume tests that"


@pytest.mark.parametrize(
    ("arguments", "text", "given"),
    [
        (("--seed", "3"), "", ("--seed", "4")),
        (("--lr", "1", "--random_seed=7"), "", ("--lr", "1", "--random_seed=8")),
        (("seed=1",), "", ("seed=2",)),
        (("-x",), 'parser.add_argument("--seed", default=1)', ("-x", "--seed", "4242")),
        (("--seeds", "3"), "", None),
        (("--seed",), "", None),
    ],
)
def test_where_a_seed_is_among_the_arguments(
    arguments: tuple[str, ...], text: str, given: tuple[str, ...] | None
) -> None:
    way = OfTheSeed.way(tried(run(), None, *arguments, text=text))
    assert way == "no argument of the script is its seed" if given is None else not isinstance(way, str)
    assert isinstance(way, str) or way.arguments == given


ROWS, LABELS = torch.zeros(4, 3), torch.tensor([0, 1, 1, 0])


@pytest.mark.parametrize(
    ("batch", "key"),
    [
        ((ROWS, LABELS), 1),
        ([ROWS, ROWS, LABELS], 2),
        ({"input_ids": ROWS.long(), "labels": LABELS}, "labels"),
        ({"input_ids": ROWS.long(), "labels": ROWS.long()}, None),  # of a language model
        ((ROWS, ROWS), None),  # of an autoencoder
        ((ROWS, LABELS[:2]), None),
        ((ROWS,), None),
        ((ROWS, "names"), None),
        (ROWS, None),
    ],
)
def test_where_the_labels_of_a_batch_are(batch: Any, key: Any) -> None:
    found = label_of(batch)
    assert (found and found[0]) == key


@pytest.mark.parametrize(("size", "other"), [(1, 2), (2, 3), (3, 2), (32, 21), (64, 42), (128, 85)])
def test_another_size(size: int, other: int) -> None:
    assert other_size(size) == other
