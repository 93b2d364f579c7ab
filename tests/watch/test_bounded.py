"""Bounded containers: none holds more than it may, and each keeps the entries that it is there for."""

from __future__ import annotations

import copy
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.watch import bounded
from harness.watch.bounded import First, FirstByKey, Latest, LatestByKey

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
