"""Bounded containers: none holds more than it may, and each keeps the entries that it is there for."""

from __future__ import annotations

import copy
import itertools
import pickle
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from harness.describe.models import Models
from harness.findings import few
from harness.watch import bounded, outline
from harness.watch.bounded import Distinct, First, FirstByKey, Latest, LatestByKey
from harness.watch.checks.mode.observations import evaluations_by_hand
from harness.watch.events import BackwardBegins, Batch, Forward, Pass, Position
from harness.watch.facts.gradient_ledger import GradientLedger
from harness.watch.facts.ledger import Contribution, Ledger
from harness.watch.facts.reported_numbers import MOST_WAITING, ReportedNumbers
from harness.watch.run.evaluations import MOST_ROWS, Evaluation, FirstCall

ENTRIES = st.lists(st.integers(0, 12), max_size=40)
BOUNDS = st.integers(1, 8)


def first(entries: Iterable[int], most: int | None = None) -> First[int]:
    found = First[int](most)
    for entry in entries:
        found.append(entry)
    return found


@given(ENTRIES, BOUNDS)
def test_the_latest_entries_are_kept(entries: list[int], most: int) -> None:
    appended, extended = Latest[int](most=most), Latest[int](most=most)
    extended.extend(entries)
    for entry in entries:
        appended.append(entry)
    assert list(appended) == list(extended) == list(Latest(entries, most)) == entries[-most:]


@given(ENTRIES, BOUNDS)
def test_the_first_entries_are_kept(entries: list[int], most: int) -> None:
    found = first(entries, most)
    assert found == entries[:most]
    assert found.is_full == (len(entries) >= most)


@given(ENTRIES, BOUNDS)
def test_the_first_keys_are_kept_with_their_latest_entries(keys: list[int], most: int) -> None:
    found, kept = FirstByKey[int, int](most), list(dict.fromkeys(keys))[:most]
    for number, key in enumerate(keys):
        taken = found.takes(key)
        found[key] = number
        assert (key in found) == taken
    latest = {key: number for number, key in enumerate(keys)}
    assert list(found.items()) == [(key, latest[key]) for key in kept]


@given(ENTRIES, BOUNDS)
def test_the_newest_key_is_always_there(keys: list[int], most: int) -> None:
    found = LatestByKey[int, int](most)
    for number, key in enumerate(keys):
        found[key] = number
        assert found[key] == number
        assert len(found) <= most


@given(st.lists(st.integers(), unique=True), BOUNDS)
def test_of_keys_that_come_once_the_latest_are_kept(keys: list[int], most: int) -> None:
    found = LatestByKey[int, int](most)
    found.update((key, -key) for key in keys)
    assert list(found.items()) == [(key, -key) for key in keys[-most:]]


def test_the_oldest_key_makes_room_and_one_that_is_there_needs_none() -> None:
    found = LatestByKey[str, int](2)
    for key in "abac":
        found[key] = ord(key)
    assert list(found) == ["b", "c"]
    found["b"] = 0
    assert list(found.items()) == [("b", 0), ("c", ord("c"))]


@pytest.mark.parametrize("kind", [FirstByKey, LatestByKey])
def test_no_way_in_goes_around_the_bound(kind: type[FirstByKey[int, int]]) -> None:
    found = kind(3)
    found.update((key, key) for key in range(9))
    assert found.setdefault(99, 5) == 5
    assert (99 in found) == (kind is LatestByKey)
    assert len(found) == 3


def test_what_was_taken_out_leaves_room_for_another_key() -> None:
    found = FirstByKey[str, int](1)
    found["a"] = 1
    assert not found.takes("b")
    del found["a"]
    found["b"] = 2
    assert found == {"b": 2}


def test_one_bound_holds_where_none_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded, "MOST", 5)
    by_key = FirstByKey[int, int](), LatestByKey[int, int]()
    for each in by_key:
        each.update((key, key) for key in range(9))
    assert [len(each) for each in (Latest(range(9)), first(range(9)), *by_key)] == [5, 5, 5, 5]


def test_a_copy_of_the_latest_has_their_bound() -> None:
    kept = copy.copy(Latest([1, 2], most=2))
    kept.append(3)
    assert list(kept) == [2, 3]


@given(st.lists(st.integers(0, 3), max_size=40), BOUNDS)
def test_different_values_are_counted(steps: list[int], most: int) -> None:
    """Values that grow, and that may come again at once."""
    values = list(itertools.accumulate(steps))
    found = Distinct[int](most)
    for value in values:
        found.add(value)
    different = list(dict.fromkeys(values))
    assert (found.number, bool(found)) == (len(different), bool(different))
    assert (found.first, list(found.latest())) == (different[:most], different[-most:])
    names = list(map(str, different))
    assert found.few(found.first, most) == few(names, most)


def test_what_is_kept_for_each_update_is_bounded() -> None:
    """Of models that are called without a graph between all updates of a long run."""
    called = outline._CalledModel("teacher", 1, 0)
    described = SimpleNamespace(**{name: Counter() for name in ("asked", "asked_active")}, asked_at=Distinct[int]())
    described.with_graph, described.without_graph, described.asked_where = 0, 0, None
    for made in range(3000):
        outline.Outline._asked(cast("Any", None), called, 8, made)
        Models._asked(cast("Any", None), cast("Any", described), "eval", 0, "train.py:1", made, graph=False)
    assert (len(called.after.first), called.after.number) == (bounded.MOST, 3000)
    assert called.after.few(called.after.first, 4) == "0, 1, 2, 3 and 2996 more"
    assert (described.asked_at.number, max(described.asked_at.latest())) == (3000, 2999)


FIRST = FirstCall(training=True, active=1, gradients=False, where=None)


def test_a_line_that_scores_remembers_a_few_updates() -> None:
    line = evaluations_by_hand.ScoringLine(1, FIRST)
    for made in range(2000):
        line.add(Evaluation(model=1, first=FIRST, update=made, rows=frozenset(range(made * 8, made * 8 + 8))))
    assert (len(line.rounds), line.calls, line.rounds[-1]) == (evaluations_by_hand.MIN_ROUNDS_OF_NEW_ROWS, 2000, 1999)
    assert len(line.rows) < MOST_ROWS + 8


def test_backward_passes_that_were_cut_are_forgotten_with_their_update() -> None:
    ledger, of = Ledger([], []), SimpleNamespace(shortened=True)
    known = cast("Any", SimpleNamespace(cut=set(), ledgers=[ledger]))
    for number in range(2000):
        ledger.entries = [Contribution(number)]
        GradientLedger.on_pass_ends(known, cast("Any", SimpleNamespace(of=of)))
    assert known.cut == {1999}


LOADER = SimpleNamespace(dataset=[1, 2, 3], batch_size=2)


def evaluated(evaluations: int, batches: int, *, by_loader: bool, lines: int = 1) -> ReportedNumbers:
    """What is kept after evaluations of two rows a batch, which nobody reported a number of."""
    found = ReportedNumbers(cast("Any", SimpleNamespace(number_of=lambda model: 1)))
    numbers, model = itertools.count(1), torch.nn.Linear(2, 3)
    for made, line in itertools.product(range(evaluations), range(lines)):
        of: Any = Pass(cast("Any", LOADER), made + 1, batches, f"train.py:{line}")
        for number in itertools.islice(numbers, batches):
            data = (torch.ones(2, 2), torch.tensor([0, 1]))
            batch = Batch(of, number, None, None, data, None) if by_loader else None
            told = {"labels": data[1]}
            forward = Forward(number, model, data[:1], told, torch.rand(2, 3), batch, where=f"train.py:{line}")
            object.__setattr__(forward, "at", Position(update=made + 1, updates_made=made))
            found.on_forward(forward)
        if by_loader:
            of.over = of.exhausted = True
        else:
            found._by_line.clear()
    return found


def size(found: ReportedNumbers) -> int:
    """Bytes of what it keeps, but for the passes, which are the instruments'."""
    kept = [[replace(each, of=None) for each in evaluations] for evaluations in found._sources.values()]
    return len(pickle.dumps((kept, found._losses, found._hits, list(found._by_line), dict(found._lengths))))


@pytest.mark.parametrize("by_loader", [True, False])
@pytest.mark.parametrize(
    ("few", "many"),
    [
        ({"batches": 640}, {"batches": 2560}),
        ({"evaluations": 70}, {"evaluations": 160}),
        ({"evaluations": 2, "lines": 20}, {"evaluations": 2, "lines": 80}),
    ],
    ids=["batches", "evaluations", "lines"],
)
def test_what_is_kept_of_evaluations_does_not_grow(by_loader: bool, few: Any, many: Any) -> None:
    usual = {"evaluations": 1, "batches": 2, "by_loader": by_loader}
    one, other = size(evaluated(**{**usual, **few})), size(evaluated(**{**usual, **many}))
    assert other < 1.1 * one
    assert one < 700_000


def test_an_evaluation_is_as_large_as_one_batch_when_it_is_over() -> None:
    short, long = (size(evaluated(2, batches, by_loader=True)) for batches in (1, 300))
    (key,) = (found := evaluated(2, 300, by_loader=True))._sources
    over, latest = found._sources[key]
    assert (over.sums.batches, len(over.waiting), len(latest.waiting)) == (300, 0, latest.batches % MOST_WAITING)
    assert len(pickle.dumps(over.sums)) < 1500
    assert long < short + MOST_WAITING * 3000


def test_losses_that_are_trained_on_are_added_up_in_time() -> None:
    found = ReportedNumbers(cast("Any", SimpleNamespace(number_of=lambda model: 1)))
    for number in range(2000):
        found.on_backward_begins(BackwardBegins(number, torch.tensor(0.5), 1.0))
    assert len(found._losses) < MOST_WAITING
    assert (found._in_all.number + len(found._losses), found._last) == (2000, 0.5)
