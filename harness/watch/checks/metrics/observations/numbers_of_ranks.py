"""Numbers of ranks: what the first of several processes reports, beside what all of them evaluated."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from harness import launch
from harness.watch.events import Fact, Reported
from harness.watch.facts.formula import Formula, formula
from harness.watch.facts.formulas import Mistake, Part, Tally, Value, exp, mistakes, summed, values
from harness.watch.facts.reported_numbers import (
    MOST_PLACES,
    MOST_ROUNDS,
    Known,
    Number,
    NumberSeries,
    ReportedNumbers,
    judged,
    keys_of_mistakes,
    kind_of,
    outcome,
)
from harness.watch.recogniser import Recogniser


class NumberOfRanks(Fact):
    """The ranks are over: a number that the first reported after evaluations of which each had a part.

    ``where`` it was reported.
    """

    needs = "number that is reported after several processes evaluated"
    of_run = True
    name: str
    number: float
    """The latest."""
    rounds: int
    ranks: int
    formula: Formula | None = None
    """The right one, of the rows of all ranks, that gives it."""
    mistake: Formula | None = None
    """The mistaken one that does, where no right one does."""
    right: float = math.nan
    """What the rows of all ranks give, the latest."""


class NumbersOfRanks(Recogniser):
    makes = (NumberOfRanks,)

    def begin(self) -> None:
        self._numbers = self.fact(ReportedNumbers)
        self._said: dict[tuple[str, str | None, int], list[tuple[Number, list[int]]]] = {}
        """Numbers by name, line and place in it, each with how many evaluations of each set of rows there were."""

    def on_reported(self, event: Reported) -> None:
        if not launch.in_process_group() or not launch.is_main_process():
            return
        made = [len(each) for each in self._numbers.evaluations]
        for slot, number in enumerate(self._numbers.named(event.text)):
            key = number.name, event.where, slot
            if (
                kind_of(number.name) is None
                or not any(made)
                or (key not in self._said and len(self._said) >= MOST_PLACES)
            ):
                continue
            rounds = self._said.setdefault(key, [])
            if len(rounds) < MOST_ROUNDS:
                rounds.append((number, made))

    def summary(self) -> list[tuple[str | None, list[dict[str, Any]]]]:
        """Evaluations of each set of rows, each as one part, and where it is evaluated."""
        return [(where, [_as_json(part) for part in parts]) for where, parts in self._numbers.totals()]

    def compare(self, summaries: Sequence[Sequence[tuple[str | None, list[dict[str, Any]]]]]) -> None:
        by_set = same_sets(summaries)
        for (name, where, _), rounds in self._said.items():
            known = [(number, _known(by_set, made)) for number, made in rounds]
            judgements = [judged(number, each) for number, each in known if each is not None]
            if len(judgements) < len(rounds):
                continue
            place = NumberSeries(name, where, value=rounds[-1][0].value, rounds=judgements)
            found = outcome(place, keys_of_mistakes([place]))
            if found is not None and found.by is not None:
                self.tell(
                    NumberOfRanks(
                        name=name,
                        number=place.value,
                        rounds=len(rounds),
                        ranks=len(summaries),
                        formula=found.formula,
                        mistake=found.mistake,
                        right=found.right,
                        where=where,
                    )
                )


def same_sets(summaries: Sequence[Sequence[tuple[str | None, list[dict[str, Any]]]]]) -> list[list[list[Part]]]:
    """For each set of rows of the first rank, the evaluations of each rank that evaluates it.

    Sets are the same that are evaluated in the same line, one after the other. Where ranks evaluate unlike numbers of
    sets in a line, nobody knows which are, and none is anybody else's.
    """
    found = []
    by_line = [Counter(where for where, _ in summary) for summary in summaries]
    seen = Counter[str | None]()
    for where, parts in summaries[0]:
        alike = len({lines[where] for lines in by_line}) == 1
        mine = [[_part(each) for each in parts]]
        for summary in summaries[1:] if alike else ():
            others = [theirs for line, theirs in summary if line == where]
            mine.append([_part(each) for each in others[seen[where]]])
        seen[where] += 1
        found.append(mine)
    return found


def _known(by_set: list[list[list[Part]]], made: list[int]) -> Known | None:
    """What a number may be that is said when so many evaluations of each set of rows were made."""
    right, wrong = list[Value](), list[Mistake]()
    for ranks, latest in zip(by_set, made, strict=False):
        parts = [rank[latest - 1] for rank in ranks if 0 < latest <= len(rank)]
        if len(parts) == len(ranks) > 1:
            right += values(Tally(summed(parts)))
            wrong += _mistaken(parts)
        elif latest:
            right += (
                value for part in parts for value in values(Tally(summed([part])))
            )  # one of the ranks evaluates alone
    return Known(right, [], wrong, True) if wrong else None


def _mistaken(parts: list[Part]) -> Iterator[Mistake]:
    """What it comes to by mistakes that only several processes make."""
    whole_of = Tally(summed(parts))
    whole = {(each.kind, each.formula.key): each.value for each in values(whole_of)}
    for reported in values(Tally(summed(parts[:1]))):
        right = whole.get((reported.kind, reported.formula.key), math.nan)
        yield Mistake(
            reported.kind, formula("rank-alone", reported.formula), reported.value, "rows", right, reported.steps
        )
    for mistake in mistakes(whole_of):
        if mistake.group == "batches":
            yield mistake._replace(formula=mistake.formula.of_ranks())
    own, of = parts[0].targets, sum(each.targets for each in parts)
    for value in values(whole_of):
        times = value.value * of / own if own else math.nan
        by_own = formula("sum-by-own-targets", targets=own)
        if value.kind == "accuracy":
            yield Mistake(value.kind, by_own, times, "rows", value.value, value.steps)
        if value.kind == "loss" and value.formula.kind == "mean":
            yield Mistake(value.kind, by_own, times, "rows", value.value, value.steps)
            yield Mistake("perplexity", formula("exponential", by_own), exp(times), "rows", exp(value.value))


def _as_json(part: Part) -> dict[str, Any]:
    confusion = None if part.confusion is None else part.confusion.tolist()
    return {**asdict(part), "confusion": confusion, "otherwise": {}}


def _part(found: Mapping[str, Any]) -> Part:
    confusion = None if found["confusion"] is None else np.array(found["confusion"], dtype=np.int64)
    tuples = {name: tuple(found[name]) for name in ("totals", "predicted")}
    agrees = None if found["agrees"] is None else tuple(found["agrees"])
    return Part(**{**found, **tuples, "agrees": agrees, "confusion": confusion})
