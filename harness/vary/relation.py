"""Relation: what must be the same, or another, where one thing of a run is changed.

A relation is one class in one file, ``relations/<family>/<fault>.py``. Its id names the fault that shows where it is
broken: ``depends::<fault>`` where something changes that must not, ``independent::<fault>`` where nothing does.
``harness explain depends`` lists them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from harness.catalogue import RELATIONS, Fault
from harness.vary.account import LoaderUsed
from harness.vary.change import Change, Kind
from harness.vary.differences import Another, Part, Run, first_loss, numbers_apart, parting, series, steady

Result = Literal["held", "broken", "did not apply"]


@dataclass(frozen=True)
class Way:
    """How a start is made otherwise."""

    change: Change = field(default_factory=Change)
    arguments: tuple[str, ...] | None = None
    """Other arguments than the script's own."""
    environment: Mapping[str, str] = field(default_factory=dict)
    after_another: bool = False
    """Whether it is made in the folder that an earlier start has left."""


@dataclass(frozen=True)
class Outcome:
    """What came of a relation."""

    result: Result
    why: str = ""
    """Reason why the relation did not apply; for one that held, what was seen all the same."""
    expected: str = ""
    observed: str = ""
    where: str | None = None
    update: int | None = None


HELD = Outcome("held")

TRAINERS_LOSS = re.compile(r"(^|[ _/])(eval|val|valid|validation|test)[ _/]loss$")
"""What Trainer of transformers calls the loss of an evaluation: the mean of its batches' means, the last one's, too
(docs/faults.md), which is no fault of the script's."""


def lacks(why: str) -> Outcome:
    """It did not apply."""
    return Outcome("did not apply", why)


def broken(expected: str, observed: str, where: str | None = None, update: int | None = None) -> Outcome:
    return Outcome("broken", "", expected, observed, where, update)


@dataclass(frozen=True)
class Tried:
    """The starts that a relation is judged by."""

    script: str
    arguments: tuple[str, ...]
    first: Run
    """Run of the script as it is."""
    again: Run
    """The same once more."""
    text: str = ""
    """What the script's file says."""

    @property
    def evaluated(self) -> list[LoaderUsed]:
        """The DataLoaders that are evaluated with alone."""
        return [each for each in self.first.account.loaders if each.evaluates and not each.trains]

    @property
    def trained(self) -> list[LoaderUsed]:
        return [each for each in self.first.account.loaders if each.trains]

    @property
    def rows(self) -> int:
        """Rows of the largest evaluation."""
        return max((each.rows for each in self.evaluated), default=0)

    def differs_from_itself(self) -> str | None:
        """Where two equal starts train otherwise, and what to do; None where they do not."""
        apart = parting(self.first, self.again)
        if apart is None:
            return None
        return f"two unchanged runs already differ: {said_of(apart.part)} in update {apart.update}"

    def numbers_apart(self, other: Run) -> Another | Outcome | None:
        """A number that is another in another start; why that cannot be said; None where all are the same."""
        same, unsteady = steady(self.first, self.again)
        if not same and unsteady is not None:
            one, two = unsteady.name, unsteady.where
            return lacks(f"two unchanged runs report a different {one} ({two}): seed the random numbers")
        if not same:
            return lacks("the script reports no recognised metric or loss")
        if same.keys().isdisjoint(series(other)):
            return lacks("the changed run reported none of the unchanged run's numbers")
        of_trainer = {
            key: each
            for key, each in same.items()
            if self.first.account.has_trainer and TRAINERS_LOSS.search(each.name)
        }
        apart = numbers_apart({key: each for key, each in same.items() if key not in of_trainer}, other, self.rows)
        if apart is None and (loss := numbers_apart(of_trainer, other, self.rows)) is not None:
            return Outcome("held", f"except for Trainer's own {loss.name}, in which all batches count equally")
        return apart

    def same_numbers(self, other: Run, when: str) -> Outcome:
        """Whether another start reports the same numbers; ``when`` says what it has otherwise."""
        apart = self.numbers_apart(other)
        if not isinstance(apart, Another):
            return apart or HELD
        expected = f"the same {apart.name} {when}, {apart.one.value:g}"
        return broken(expected, f"{apart.name} {apart.other.value:g}", apart.one.where)

    def same_rows(self, other: Run, when: str, parts: Sequence[Part] = ("rows", "number of updates")) -> Outcome:
        """Whether another start trains with the same rows in the same order."""
        if (itself := parting(self.first, self.again, parts)) is not None:
            return lacks(f"two unchanged runs already train on different rows in update {itself.update}")
        apart = parting(self.first, other, parts)
        if apart is None and "contents" in parts:
            apart = first_loss(self.first, other)
        if apart is None:
            return HELD
        expected = f"the same rows in the same order {when}"
        return broken(expected, f"{apart.what} in update {apart.update}", apart.where, apart.update)


WORDS: Mapping[str, str] = {
    "contents": "the same rows have different values",
    "number of updates": "a different number of updates",
    "rates": "a different learning rate",
    "losses": "another loss",
}


def said_of(part: str) -> str:
    """What parts, in words."""
    return WORDS.get(part, f"other {part}")


class Relation(Fault, package=RELATIONS):
    """One thing that must be the same, or another."""

    tries: ClassVar[str]
    """What is changed, in a few words."""
    kind: ClassVar[Kind] = "as it is"

    @classmethod
    def way(cls, tried: Tried) -> Way | str:
        """How the start is made; why there is none, where it cannot be."""
        raise NotImplementedError

    @classmethod
    def judge(cls, tried: Tried, other: Run) -> Outcome:
        """What the changed start says."""
        raise NotImplementedError

    @classmethod
    def of_loaders(cls, loaders: Sequence[LoaderUsed]) -> Way:
        return Way(Change(cls.kind, tuple(each.number for each in loaders)))
