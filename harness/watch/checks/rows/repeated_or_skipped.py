from __future__ import annotations

import itertools
from collections.abc import Mapping

from harness.watch.check import Check
from harness.watch.events import End, PassEnds
from harness.watch.facts.datasets import stored_rows
from harness.watch.facts.passes import Beginning, Passes
from harness.watch.monitor import Monitor

MAX_SHARE_OF_DIFFERENT_ROWS = 0.5
"""Largest number of different rows that are given, as a share of those that the dataset holds at the same places. By
reasoning: an index that is halved gives half of them."""

MAX_ALIKE = 0.8
"""Largest share of different rows that is looked into. By reasoning: an index that is halved gives half, and more where
not all places have been seen."""

LOOKED_UP = 64
"""Places of a dataset that are compared with what it holds there: what tells a rule. Neither half nor double of it
changes a verdict of the corpus."""

ENOUGH_ROWS = 32
"""Rows of a pass that must have been seen. Half or double of it changes verdicts (docs/detection.md)."""

LIBRARIES = ("datasets", "torch", "builtins")
"""Packages whose datasets give each row once: where it comes twice, it is in the data twice."""


class RepeatedOrSkipped(Check):
    """A dataset gives some of its rows at several places, and others nowhere.

    ## Why is this a bug?
    If `__getitem__` divides its index, or takes a remainder of it, many indices give the same row. The model never
    learns from the rows that no index reaches, and the others count several times. The loss falls as it should, on
    fewer rows than the dataset has.

    ## What to do
    Look at the dataset's `__getitem__` and at the indices that select from it.

    ## When it is right
    Datasets that hold few different rows, that draw their rows themselves or that go through all of theirs several
    times are not reported.
    """

    needs = "epoch of rows that can be told apart"
    formerly = ("rows::every-row-once",)
    explains = ("schedule::may-be-too-long", "schedule::wrong-length")

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.passes = monitor.fact(Passes)
        self.saw_enough = self.saw_some_twice = False
        """Whether a pass that trained was long enough; whether rows came twice and follow no rule that is known."""

    def lacks(self) -> str:
        return "no rule in the rows that came twice" if self.saw_some_twice else super().lacks()

    def on_pass_ends(self, event: PassEnds) -> None:
        beginning = self.passes.beginnings.get(event.of)
        if beginning is None:
            return
        different = len(set(beginning.at.values())) if event.of.trains else len(beginning.rows)
        self.saw_some_twice |= different < (len(beginning.at) if event.of.trains else beginning.rows.total())
        if not event.of.trains or beginning.rows.total() < ENOUGH_ROWS:
            return
        self.saw_enough = True
        if _gives_few_of_many(event.of.dataset, beginning):
            self.found(
                expected="another row at each place of the dataset",
                observed=f"{beginning.rows.total()} rows of an epoch are {len(beginning.rows)} different ones",
                where=beginning.where,
                update=self.monitor.updates_made,
            )

    def on_end(self, event: End) -> None:
        self.looked |= self.saw_enough and not self.saw_some_twice


def _gives_few_of_many(dataset: object, beginning: Beginning) -> bool:
    """Whether a dataset of the script's own gives half of the different rows that it holds at these places, or less.

    Not where the rows that are alike follow no rule: they are so by nature.
    """
    own = type(dataset).__module__.partition(".")[0] not in LIBRARIES
    different = len(set(beginning.at.values()))
    if not own or len(beginning.at) < ENOUGH_ROWS or different > MAX_ALIKE * len(beginning.at):
        return False
    if not (_are_runs(beginning.at) or _are_remainders(beginning.at)):
        return False
    places = sorted(beginning.at)[:LOOKED_UP]
    given = len({beginning.at[place] for place in places})
    return given <= MAX_SHARE_OF_DIFFERENT_ROWS * stored_rows(dataset, places)


def _are_runs(at: Mapping[int, bytes]) -> bool:
    """Whether indices beside each other give one row, as where the index is divided."""
    changes = sum(at[one] != at[other] for one, other in itertools.pairwise(sorted(at)))
    return changes == len(set(at.values())) - 1


def _are_remainders(at: Mapping[int, bytes]) -> bool:
    """Whether indices with one remainder give one row, as where it is taken of the index."""
    by = len(set(at.values()))
    return len({(index % by, row) for index, row in at.items()}) == by
