"""Bounded containers: none holds more than it may, and each keeps the entries that it is there for."""

from __future__ import annotations

import copy
import itertools
from collections import Counter
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from harness.describe.models import Models
from harness.findings import few
from harness.watch import bounded
from harness.watch.bounded import Distinct, First, FirstByKey, Latest, LatestByKey
from harness.watch.events import Forward
from harness.watch.facts import outline, reported_numbers
from harness.watch.facts.evaluations_by_hand import MIN_ROUNDS_OF_NEW_ROWS, EvaluationsByHand
from harness.watch.facts.gradient_ledger import Contribution, GradientLedger, Ledger

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


def test_a_line_that_scores_remembers_a_few_updates() -> None:
    known = cast("Any", SimpleNamespace(monitor=SimpleNamespace(number_of=id, updates_made=0)))
    forward = Forward(1, torch.nn.Linear(2, 1), (torch.ones(4, 2),), {}, None)
    lines = FirstByKey[tuple[int, str | None], Any]()
    for known.monitor.updates_made in range(2000):
        line = EvaluationsByHand._keep(known, forward, lines, cast("Any", None))
    assert line is not None
    assert (len(line.rounds), line.calls) == (MIN_ROUNDS_OF_NEW_ROWS, 2000)


def test_backward_passes_that_were_cut_are_forgotten_with_their_update() -> None:
    ledger, of = Ledger([], []), SimpleNamespace(shortened=True)
    known = cast("Any", SimpleNamespace(cut=set(), ledgers=[ledger]))
    for number in range(2000):
        ledger.entries = [Contribution(number)]
        GradientLedger.on_pass_ends(known, cast("Any", SimpleNamespace(of=of)))
    assert known.cut == {1999}


def test_parts_of_a_line_are_remembered_up_to_the_batches_that_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reported_numbers, "MOST_PARTS", 8)
    known = cast("Any", SimpleNamespace(monitor=SimpleNamespace(number_of=id), _by_line={}))
    known._began = lambda key, evaluation: evaluation
    model = torch.nn.Linear(2, 1)
    for number in range(20):
        found = reported_numbers.ReportedNumbers._evaluation(
            known, Forward(number, model, (torch.ones(4, 2),), {}, None)
        )
    assert found is not None
    assert len(found.bases) == 8
