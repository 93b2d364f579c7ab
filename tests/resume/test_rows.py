"""Where a script is killed, and what became of its rows, on journals that are written by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import CannotTry
from harness.report.resume import outcome_lines
from harness.resume.attempt import Attempt
from harness.resume.judge import findings, shown_by
from harness.resume.plan import Kill, KillReport, after_each, ends_of_epochs, kills
from harness.resume.rows import Row, other_rows
from harness.resume.run import ResumeReport, _check_checkpoints, _check_repeats
from harness.starts.journal import BatchTrained, End, Journal, Loaded, Saved, Update, Writer
from harness.starts.orders import KillPoint

EPOCHS = ([3, 1, 0, 2], [1, 2, 3, 0], [0, 3, 2, 1])
"""The rows of three epochs, two a batch."""


def journal(batches: Sequence[tuple[int, Sequence[Row]]], *, behind: int = 0, **changes: Any) -> Journal:
    """One update a batch, given as (number of the pass, rows); the weights say how many updates lie behind."""
    made = Journal()
    for at, (number, rows) in enumerate(batches, start=1):
        values: dict[str, Any] = {
            "at": at,
            "batches": (BatchTrained(number, tuple(rows), f"rows {list(rows)}"),),
            "losses": (f"{behind + at}",),
            "lr": (0.1,),
            "options": {},
            "scale": 1.0,
            "skipped": 0,
            "weights": {"weight": f"after {behind + at - 1}"},
            "state": {"weight exp_avg": f"after {behind + at - 1}"} if behind + at > 1 else {},
            "gradients": {"weight": f"of {behind + at}"},
            "random": {"Python": "as it was", "torch": f"after {behind + at}"},
            "modes": "training",
        }
        made.updates.append(Update(**(values | changes)))
    made.end = End({"weight": f"after {behind + len(batches)}"})
    return made


def whole() -> Journal:
    made = journal([(epoch + 1, rows[place : place + 2]) for epoch, rows in enumerate(EPOCHS) for place in (0, 2)])
    made.saves = [saved(at) for at in range(1, 6)]
    return made


def saved(at: int, **changes: Any) -> Saved:
    values = {"weight": f"after {at}", "state": f"after {at}"}
    given: dict[str, Any] = {
        "number": at,
        "at": at,
        "pending": 0,
        "path": "checkpoint.pt",
        "values": values,
        "weights": True,
    }
    return Saved(**(given | {"where": "train.py:9", "done": True} | changes))


def attempt(batches: Sequence[tuple[int, Sequence[Row]]], *, origin: int, **changes: Any) -> Attempt:
    """The script goes on from a checkpoint after ``origin`` updates with these batches."""
    killed = journal([(1, [0])] * (origin + 1))
    killed.saves = [saved(origin)]
    resumed = journal(batches, behind=origin, **changes)
    resumed.saves = [saved(at, values=saved(origin + at).values) for at in range(1, len(batches))]
    resumed.loads = [Loaded("file", 0, "train.py:4")]
    return Attempt(Kill("in an epoch", KillPoint(update=origin + 1), origin + 1), whole(), whole(), killed, resumed)


def rest(origin: int) -> list[tuple[int, Sequence[Row]]]:
    return [(each.batches[0].number, each.batches[0].rows) for each in whole().updates[origin:]]


@pytest.mark.parametrize("origin", range(1, 6))
def test_what_goes_on_as_it_would_have_is_right(origin: int) -> None:
    survived = attempt(rest(origin), origin=origin)
    assert survived.origin == survived.resumed_from == origin
    assert survived.parting is None
    assert shown_by(survived) == {}


@pytest.mark.parametrize(
    ("origin", "batches", "kind", "observed"),
    [
        (3, [(1, [1, 2]), (1, [3, 0]), (2, [0, 3]), (2, [2, 1])], "repeated", "it starts again with the first row: 2"),
        (3, [(1, [0, 3]), (1, [2, 1])], "skipped", "those of epoch 3: 2 rows are skipped"),
        (2, [(1, [3, 0]), (2, [0, 3]), (2, [2, 1])], "skipped", "2 rows of epoch 2 are skipped"),
        (2, [(1, [0, 3]), (1, [2, 1])], "epoch skipped", "the rows of epoch 3"),
        (2, [(1, [3, 1]), (1, [0, 2]), (2, [0, 3]), (2, [2, 1])], "order", "epoch 2 continues in the order of epoch 1"),
        (3, [(1, [3, 2]), (2, [0, 3]), (2, [2, 1])], "order", "1 rows are trained on a second time, and 1 are skipped"),
        (2, [(1, [0, 2]), (1, [3, 1]), (2, [0, 3]), (2, [2, 1])], "order", "a different order"),
    ],
)
def test_other_rows(origin: int, batches: list[tuple[int, list[int]]], kind: str, observed: str) -> None:
    found = other_rows(attempt(batches, origin=origin))
    assert found is not None
    assert found.kind == kind
    assert observed in found.observed


@pytest.mark.parametrize(
    ("batches", "kind", "observed"),
    [
        ([[3, 1], [0, 2], [1, 2]], "repeated", "those of update 1: 6 rows are trained on a second time"),
        ([[0, 3], [2, 1]], "skipped", "those of update 5: 2 rows are skipped"),
        ([[3, 1], [2, 0], [1, 2]], "order", "a different order"),
    ],
)
def test_other_rows_of_batches_of_its_own(batches: list[list[int]], kind: str, observed: str) -> None:
    given = attempt([(0, rows) for rows in batches], origin=3)
    for each in (given.whole, given.again):
        stream = [(0, update.batches[0].rows) for update in each.updates]
        each.updates = journal(stream).updates
    found = other_rows(given)
    assert found is not None
    assert (found.kind, observed in found.observed) == (kind, True), found


def test_a_window_that_is_cut() -> None:
    cut = attempt(rest(3), origin=3)
    for each in (cut.whole, cut.again):
        window = (BatchTrained(2, (1, 2), "a"), BatchTrained(2, (3, 0), "b"))
        each.updates[3] = Update(**(vars(each.updates[3]) | {"batches": window}))
    cut.killed.saves[-1] = saved(3, pending=1)
    found = other_rows(cut)
    assert found is not None
    assert found.kind == "window"
    assert "beginning with the second: the checkpoint was written after 1 of 2" in found.observed
    assert set(shown_by(cut)) == {"resume::window-cut"}


@pytest.mark.parametrize(
    ("changes", "loss", "says"),
    [
        ({"weights": {"weight": "others"}}, "weights-lost", "it was saved, but not loaded"),
        ({"state": {}}, "optimizer-state-lost", "none; it was saved, but not loaded"),
        ({"lr": (0.2,)}, "schedule-lost", "a learning rate of 0.2"),
        ({"options": {"weight_decay": "0"}}, "schedule-lost", "different ones, such as weight decay"),
        ({"scale": 2.0}, "scaler-lost", "multiplied by 2, after 0 skipped steps"),
        ({"skipped": 3}, "scaler-lost", "multiplied by 1, after 3 skipped steps"),
        (
            {"losses": ("9",), "random": {"torch": "others"}},
            "random-state-lost",
            "torch draws different random numbers",
        ),
        ({"losses": ("9",)}, "computes-otherwise", "a different loss"),
        ({"losses": ("9",), "modes": "evaluation"}, "computes-otherwise", "different modules are in training mode"),
        ({"gradients": {"weight": "others"}}, "computes-otherwise", "different gradients"),
    ],
)
def test_what_is_lost_at_once(changes: dict[str, Any], loss: str, says: str) -> None:
    lost = attempt(rest(3), origin=3, **changes)
    assert lost.origin == 3
    (found,) = findings([lost], "train.py")
    assert found.check == f"resume::{loss}"
    assert says in found.observed
    assert (found.update, found.where) == (4, "train.py:4")


def with_rates(lost: Attempt, whole: Sequence[float], resumed: Sequence[float], **changes: Any) -> Attempt:
    """The attempt with other learning rates, and other changes of the second update after the start."""
    for journals, rates in (((lost.whole, lost.again), whole), ((lost.resumed,), resumed)):
        for each in journals:
            each.updates = [Update(**(vars(u) | {"lr": (rates[u.at - 1],)})) for u in each.updates]
    lost.resumed.updates[1] = Update(**(vars(lost.resumed.updates[1]) | changes))
    return lost


OTHER_ORDER = [(1, [0, 2]), (1, [3, 1]), (2, [0, 3]), (2, [2, 1])]
"""What is trained with from update 3 on, where the order of the second epoch was lost."""


def test_a_schedule_is_lost_beside_an_order() -> None:
    """Whose rate is right in the first update, as that of the optimizer's state is."""
    lost = with_rates(attempt(OTHER_ORDER, origin=2), (6, 5, 4, 3, 2, 1), (4, 6, 5, 4))
    found = {each.check: each for each in findings([lost], "train.py")}
    assert set(found) == {"resume::data-order-lost", "resume::schedule-lost"}
    assert all(each.explained_by is None for each in found.values())
    assert (found["resume::schedule-lost"].update, found["resume::schedule-lost"].observed) == (
        4,
        "a learning rate of 6",
    )


@pytest.mark.parametrize(
    ("order", "rates", "changes"),
    [
        (OTHER_ORDER, (4, 3, 6, 5), {}),
        ([(1, [0, 2]), (2, [3, 1]), (2, [0, 3]), (3, [2, 1])], (4, 6, 5, 4), {}),
        (OTHER_ORDER, (4, 6, 5, 4), {"evaluations": ("said",)}),
        (OTHER_ORDER, (4, 6, 5, 4), {"skipped": 1}),
    ],
    ids=["its epoch is over", "an epoch that was left is over", "a model is evaluated", "a step is left out"],
)
def test_a_rate_that_may_follow_from_other_rows_is_no_schedule_that_was_lost(
    order: list[tuple[int, list[int]]], rates: Sequence[float], changes: dict[str, Any]
) -> None:
    lost = with_rates(attempt(order, origin=2), (6, 5, 4, 3, 2, 1), rates, **changes)
    assert [each.check for each in findings([lost], "train.py")] == ["resume::data-order-lost"]


def test_what_follows_from_a_loss_is_below_it_unless_it_shows_alone() -> None:
    more = attempt([*OTHER_ORDER, (3, [0, 1]), (3, [2, 3])], origin=2)
    alone = attempt(OTHER_ORDER, origin=2)
    cause, effect = "resume::epoch-repeated", "resume::data-order-lost"
    assert [(each.check, each.explained_by) for each in findings([more], "train.py")] == [
        (cause, None),
        (effect, cause),
    ]
    both = findings([more, alone], "train.py")
    assert {(each.check, each.explained_by) for each in both} == {(cause, None), (effect, None)}
    assert set(shown_by(more)) == {cause, effect}


def test_a_kill_more_than_was_asked_for_is_counted_apart() -> None:
    kills = [KillReport(3, 2, "in an epoch"), KillReport(2, 1, "after an update", besides=True)]
    (line,) = outcome_lines(ResumeReport("train.py", kills, seconds={"uninterrupted": 1.0, "in all": 9.0}))
    assert line.startswith("train.py: 2 of 2 kills (1 requested, 1 more just before a save that failed) survived")


@pytest.mark.parametrize(("rows", "loss"), [((3, 2), "data-order-lost"), ((3, 0), "weights-lost")])
def test_running_statistics_are_compared_where_the_rows_are_the_same(rows: tuple[int, int], loss: str) -> None:
    """They move in the forward pass, before the step at which weights are compared."""
    lost = attempt([(1, rows), *rest(4)], origin=3)
    for each in (lost.whole, lost.again, lost.resumed):
        for update in each.updates:
            mean = f"of {update.batches[0].rows} at {update.losses}"
            update.weights["running_mean"] = mean if each is not lost.resumed else f"{mean}, from 0"
    if loss == "data-order-lost":
        lost.resumed.updates[0] = Update(**(vars(lost.resumed.updates[0]) | {"losses": ("of other rows",)}))
    assert set(shown_by(lost)) == {f"resume::{loss}"}


def test_what_was_not_saved_is_said_at_the_line_that_saves() -> None:
    lost = attempt(rest(3), origin=3, state={})
    lost.killed.saves[-1] = saved(3, values={"weight": "after 3"})
    lost.whole.updates[3].state["weight exp_avg"] = "after 3 of Adam"
    (found,) = findings([lost], "train.py")
    assert (found.check, found.where) == ("resume::optimizer-state-lost", "train.py:9")
    assert found.observed == "none; checkpoint.pt does not contain it"


def test_a_step_that_was_left_out_before_the_checkpoint_is_not_left_out_again() -> None:
    right = attempt(rest(3), origin=3)
    for each in (right.whole, right.again):
        each.updates[3] = Update(**(vars(each.updates[3]) | {"skipped": 1}))
    assert shown_by(right) == {}


def test_too_many_and_too_few_updates() -> None:
    more = attempt([*rest(4), (4, [0, 1]), (4, [2, 3])], origin=4)
    assert set(shown_by(more)) == {"resume::epoch-repeated"}
    fewer = attempt(rest(4)[:1], origin=4)
    assert set(shown_by(fewer)) == {"resume::epoch-skipped"}


def test_a_script_that_begins_anew() -> None:
    anew = attempt(rest(0), origin=4)
    anew = Attempt(anew.kill, anew.whole, anew.again, anew.killed, whole())
    assert anew.resumed_from is None
    (found,) = findings([anew], "train.py")
    assert found.check == "resume::began-anew"
    without = Attempt(anew.kill, anew.whole, anew.again, Journal(), whole())
    assert shown_by(without) == {}, "there was no checkpoint to go on from"


def test_a_script_begins_anew_where_its_first_save_is_cut_short() -> None:
    anew = attempt(rest(0), origin=4)
    during = Kill("during a save", KillPoint(file=2), 4)
    killed = Journal(anew.killed.updates, [saved(4), saved(4, number=2, path="optimizer.pt", done=False)])
    assert shown_by(Attempt(during, anew.whole, anew.again, killed, whole())) == {}
    killed.saves.insert(0, saved(2))
    assert set(shown_by(Attempt(during, anew.whole, anew.again, killed, whole()))) == {"resume::began-anew"}
    after = Attempt(anew.kill, anew.whole, anew.again, Journal(killed.updates, [saved(4)]), whole())
    assert set(shown_by(after)) == {"resume::began-anew"}


def test_what_only_a_save_loses_is_the_saves_fault() -> None:
    torn = attempt(rest(3), origin=3, state={})
    torn = Attempt(Kill("during a save", KillPoint(file=4), 4), torn.whole, torn.again, torn.killed, torn.resumed)
    assert [each.check for each in findings([torn], "train.py")] == ["resume::checkpoint-torn"]
    always = attempt(rest(3), origin=3, state={})
    assert [each.check for each in findings([torn, always], "train.py")] == ["resume::optimizer-state-lost"]


def test_a_script_that_raises_cannot_go_on() -> None:
    fails = attempt(rest(3)[:1], origin=3)
    fails.resumed.end = End({}, crashed="Traceback ...\nFileExistsError: checkpoints", where="train.py:2")
    (found,) = findings([fails], "train.py")
    assert (found.check, found.where, found.observed) == ("resume::fails", "train.py:2", "FileExistsError: checkpoints")


def test_files_that_are_written_at_other_updates_are_chosen_by_another_score() -> None:
    lost = attempt(rest(3), origin=3)
    for each in (lost.whole, lost.again):
        each.saves += [saved(2, number=7, path="best.pt")]
    lost.resumed.saves = [saved(1, number=1, values=saved(4).values), saved(1, number=2, path="best.pt")]
    lost.resumed.saves += [saved(2, number=3, values=saved(5).values)]
    (found,) = findings([lost], "train.py")
    assert (found.check, found.update) == ("resume::best-score-lost", 4)
    assert found.observed == "it is written after that update"


def test_a_second_copy_of_the_weights() -> None:
    lost = attempt(rest(3), origin=3)
    for each in (lost.whole, lost.again):
        each.saves = [saved(at, values={"ema": "0123456789abcdef"}) for at in (3, 4, 5)]
    lost.resumed.saves = [saved(at, values={"ema": "fedcba9876543210"}) for at in (1, 2)]
    (found,) = findings([lost], "train.py")
    assert (found.check, found.update) == ("resume::ema-lost", 4)
    random = Attempt(lost.kill, lost.whole, whole(), lost.killed, lost.resumed)
    random.again.saves = lost.resumed.saves and [saved(at, values={"ema": "0000000000000000"}) for at in (3, 4, 5)]
    assert shown_by(random) == {}, "two uninterrupted runs differ in it"


@given(st.integers(1, 40), st.integers(0, 100))
def test_kills_are_different_places_within_the_run(count: int, seed: int) -> None:
    places = kills(whole(), count, seed)
    assert places == kills(whole(), count, seed)
    assert len({(kill.place.update, kill.place.file) for kill in places}) == len(places)
    assert len(places) == min(count, len(places))
    assert [kill.kind for kill in places[:2]] == ["in an epoch", "during a save"][: len(places)]
    assert all(1 <= kill.at < 6 for kill in places)
    assert len(after_each(range(1, 6))) == 5


def test_epochs_end_where_a_pass_does_or_a_row_comes_again() -> None:
    assert ends_of_epochs(whole()) == {2, 4, 6}
    own = journal([(0, [3, 1]), (0, [0, 2]), (0, [1, 2]), (0, [3, 0])])
    assert ends_of_epochs(own) == {2, 4}


def test_a_journal_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    file = tmp_path / "journal.jsonl"
    with file.open("w") as text:
        writer = Writer(text)
        for update in whole().updates:
            writer.write(update)
        writer.write(saved(2, done=False))
        writer.write(saved(2))
        writer.write(saved(4, done=False))
        writer.write(Loaded("module", 2, None))
        writer.write(None)
        text.write('{"event": "upd')
    read = Journal.read(file)
    assert read.updates == whole().updates
    assert [(each.at, each.done) for each in read.saves] == [(2, True), (4, False)]
    assert (read.killed, read.end) == (True, None)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"rows": [4, 5], "weights": {"weight": "x"}}, "seed what draws the rows and what initialises the model"),
        ({"weights": {"weight": "x"}}, "seed what initialises the model"),
        ({"rows": [4, 5]}, "seed what draws the rows"),
        ({"rows": [4, 5], "random": {"Python": "x", "torch": "after 1"}}, "seed Python (random.seed(0))"),
        ({"losses": ("x",)}, "choose deterministic kernels"),
    ],
)
def test_what_to_seed_where_two_runs_differ(changes: dict[str, Any], says: str) -> None:
    rows = changes.pop("rows", [0, 1])
    with pytest.raises(CannotTry) as raised:
        _check_repeats("train.py", journal([(1, [0, 1])]), journal([(1, rows)], **changes))
    assert says in str(raised.value)
    assert rows == [0, 1] or "the rows differ" in str(raised.value)


@pytest.mark.parametrize(
    ("values", "otherwise"), [({"model.weight": "1.5"}, False), ({"rows": "0123456789abcdef"}, False), ({}, True)]
)
def test_a_checkpoint_may_hold_the_weights_otherwise(values: dict[str, str], otherwise: bool) -> None:
    """In half precision, say: it is one where there is no other, and is judged by what goes on from it."""
    made = whole()
    made.saves = [saved(2, values=values, weights=False, otherwise=otherwise)]
    if otherwise:
        _check_checkpoints("train.py", made)
        one = attempt(rest(2), origin=2)
        assert Attempt(one.kill, made, made, made, one.resumed).checkpoint is not None
        assert Attempt(one.kill, whole(), whole(), made, one.resumed).checkpoint is None, "another file has them"
        return
    with pytest.raises(CannotTry, match=r"train\.py keeps no checkpoint: no file with its weights"):
        _check_checkpoints("train.py", made)


OLDER = {"path": "step-2.pt", "values": {"model.w": "a", "step": "2"}}
NEWER = {"path": "step-4.pt", "values": {"model.w": "b", "step": "4"}}


@pytest.mark.parametrize(
    ("changes", "sources", "named"),
    [
        ({}, (), True),
        ({"done": False}, (), False),  # half written
        ({"path": "best.pt"}, (), False),  # of another kind, which the script need not go on from
        ({"path": "best.pt"}, ("best.pt",), True),  # and does, after another kill
        ({"path": "gone-4.pt"}, ("best.pt",), False),  # removed since
        ({"path": "gone-4.pt"}, ("gone-*.pt",), True),  # by a script that would have used it
        ({"weights": False}, (), False),
    ],
)
def test_the_newest_complete_checkpoint_is_to_be_used(
    changes: dict[str, Any], sources: tuple[str, ...], named: bool
) -> None:
    made = attempt(rest(2), origin=2)
    newer = saved(4, **(NEWER | changes))
    made.killed.saves = [saved(2, **OLDER), newer]
    made.resumed.there = frozenset({"step-2.pt", newer.path} - {"gone-4.pt"})
    kill = Kill("in an epoch", KillPoint(update=5), 5)
    found = shown_by(Attempt(kill, made.whole, made.again, made.killed, made.resumed, sources=set(sources)))
    assert ("resume::newest-not-used" in found) == named
    if named:
        removed = "; it was written and then removed" * (newer.path == "gone-4.pt")
        said = "it continues after update 2: 2 updates are repeated"
        assert found["resume::newest-not-used"].observed == f"{said}{removed}"


def test_a_file_that_holds_as_much_and_comes_as_often_is_to_be_used() -> None:
    made = attempt(rest(2), origin=2)
    uninterrupted = whole()
    best, last = {"path": "best.pt"}, {"path": "last.pt"}
    uninterrupted.saves = [saved(2, **last), saved(2, **best), saved(4, **last)]
    made.killed.saves = [saved(2, **best), saved(4, **last)]
    made.resumed.there = frozenset({"best.pt", "last.pt"})

    def found() -> bool:
        shown = shown_by(Attempt(made.kill, uninterrupted, uninterrupted, made.killed, made.resumed))
        return "resume::newest-not-used" in shown

    assert found(), "the best is gone on from, and the last is newer"
    uninterrupted.saves[0] = saved(3, **last)
    assert not found(), "the other is written when it is as good only"
    uninterrupted.saves[0] = saved(2, **last)
    made.killed.saves[0] = saved(2, path="best.pt", values={"optimizer": "x"})
    assert not found(), "it lacks what the older one has"


@pytest.mark.parametrize(
    ("whole_rows", "killed_rows", "resumed_rows", "says"),
    [
        (("ab", "c"), ("ab", "c"), ("ab", "c"), None),
        (
            ("ab", "c"),
            ("ab", "c"),
            ("ac", "b"),
            "1 of them are now trained on, and 1 rows that were trained on before",
        ),
        (("ab", "bc"), ("ab", "bc"), ("ab", "bc"), None),  # a row that is in both parts as it is
        (("abc", "bcd"), ("abc", "bcd"), ("acd", "b"), None),  # what is evaluated is not held out
        (("ab", "c"), ("ab", "c"), ("xy", "z"), None),  # augmented anew
    ],
)
def test_rows_that_were_held_out_stay_held_out(
    whole_rows: tuple[str, str], killed_rows: tuple[str, str], resumed_rows: tuple[str, str], says: str | None
) -> None:
    made = attempt(rest(2), origin=2)
    for journal_of, rows in ((made.whole, whole_rows), (made.killed, killed_rows), (made.resumed, resumed_rows)):
        first = journal_of.updates[0]
        journal_of.updates[0] = replace(first, taught=tuple(rows[0]), evaluated=tuple(rows[1]))
    found = shown_by(made)
    assert ("resume::split-lost" in found) == (says is not None)
    if says is not None:
        assert says in found["resume::split-lost"].observed
