"""Containers for what a fact keeps: however long a script runs, they hold a few entries.

The rounds of a loop are alike, so the first entries, or the latest, say what all of them would.
"""

from __future__ import annotations

from collections import UserDict, deque
from collections.abc import Iterable
from typing import Generic, TypeVar

K = TypeVar("K")
T = TypeVar("T")

MOST = 64
"""Entries of a container that is given no bound of its own: more than a script usually has models, optimizers, epochs,
or micro-batches in one window. Where an entry is large, the bound is smaller."""


class Latest(deque[T]):
    """The latest entries: a new one takes the place of the oldest."""

    def __init__(self, entries: Iterable[T] = (), most: int | None = None) -> None:
        super().__init__(entries, most or MOST)


class First(list[T]):
    """The first entries that are appended: a full one takes no more."""

    def __init__(self, most: int | None = None) -> None:
        super().__init__()
        self._most = most or MOST

    @property
    def is_full(self) -> bool:
        return len(self) >= self._most

    def append(self, entry: T) -> None:
        if not self.is_full:
            super().append(entry)


class FirstByKey(UserDict[K, T]):
    """The entries of the first keys: a full one takes no other key."""

    def __init__(self, most: int | None = None) -> None:
        super().__init__()
        self._most = most or MOST

    def takes(self, key: K) -> bool:
        """Whether the key is there, or there is room for it."""
        return key in self.data or len(self.data) < self._most

    def __setitem__(self, key: K, entry: T) -> None:
        if self.takes(key):
            self.data[key] = entry


class LatestByKey(FirstByKey[K, T]):
    """The entries of the latest keys: a new key takes the place of the oldest."""

    def __setitem__(self, key: K, entry: T) -> None:
        if not self.takes(key):
            del self.data[next(iter(self.data))]
        self.data[key] = entry


class Distinct(Generic[T]):
    """How many different values come, and the first of them; a value that comes again comes soon."""

    def __init__(self, most: int | None = None) -> None:
        self.first = First[T](most)
        self._latest = Latest[T](most=most)
        self.number = 0

    def __bool__(self) -> bool:
        return self.number > 0

    def add(self, value: T) -> None:
        if value not in self._latest and value not in self.first:
            self._latest.append(value)
            self.first.append(value)
            self.number += 1

    def latest(self) -> Latest[T]:
        """The latest that were new."""
        return self._latest

    def ends(self) -> list[T]:
        """The very first and the latest."""
        return [self.first[0], self._latest[-1]]

    def rename(self, value: T, other: T) -> None:
        """Have another value in the place of one, which may be there already."""
        there = other in self.first or other in self._latest
        found = [entries for entries in (self.first, self._latest) if value in entries]
        for entries in found:
            if there:
                entries.remove(value)
            else:
                entries[entries.index(value)] = other
        self.number -= bool(found) and there

    def few(self, values: Iterable[T], most: int) -> str:
        """Some of the first values, and how many more there are of all."""
        shown = [str(each) for each in values][:most]
        return ", ".join(shown) + (f" and {self.number - len(shown)} more" if self.number > len(shown) else "")
