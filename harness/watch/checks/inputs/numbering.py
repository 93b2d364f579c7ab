from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from harness.watch.check import NOTHING_TO_JUDGE, Check, Found, Held, Verdict
from harness.watch.facts.datasets import length
from harness.watch.run.passes import Alike, PassesOver

MOST_NAMES = 200_000
"""Names of a numbering that is read: more than a vocabulary has."""

MIN_SHARED = 0.5
"""Smallest share of the names of the smaller numbering that both must have. By reasoning: lists of files or texts have
none in common, and classes or words of two splits most."""


class NumberedApart(Check):
    """Training and evaluation number the same classes or words differently.

    ## Why is this a bug?
    A mapping from names to numbers that is made of the rows of each split depends on which names occur there, and
    first. Class 3 of the evaluation is then another class than the model learned as 3, and each word another word. The
    score is too low, with no error, and changes with the split.

    ## What to do
    Make the mapping once, of the training rows or of a fixed list, and give the same one to all splits.

    ## When it is right
    Numberings that agree in all names that both have are not reported. Only what a dataset keeps as an attribute is
    seen: a dict of names and consecutive numbers, or an array of names beside one of the rows' numbers.

    ## References
    - https://pandas.pydata.org/docs/reference/api/pandas.factorize.html
    """

    severity = "error"
    new_since = "0.4.0"
    needs = "classes or words that the datasets of training and evaluation both number"

    def on_passes_over(self, fact: PassesOver) -> None:
        trained = [each for kind in fact.training for each in _numberings(kind)]
        for kind in fact.evaluating:
            for name, mine in _numberings(kind):
                for other, its in trained:
                    shared = mine.keys() & its.keys() if name == other and mine is not its else ()
                    if len(shared) >= max(2, MIN_SHARED * min(len(mine), len(its))):
                        moved = sorted(each for each in shared if mine[each] != its[each])
                        example = f"{moved[0]!r} is {its[moved[0]]} and {mine[moved[0]]}" if moved else ""
                        self.says(self.judge(name, len(shared), len(moved), example), kind.first.where)

    @staticmethod
    def judge(name: str, shared: int, moved: int, example: str = "") -> Verdict:
        """Names that both have under an attribute, those of them with two numbers, and one of these."""
        if not moved:
            return Held(f"{shared} names of `{name}` have the same numbers in training and evaluation")
        if moved == 1:
            return NOTHING_TO_JUDGE
        return Found(
            expected="one mapping from names to numbers for training and evaluation",
            observed=f"{moved} of the {shared} names that both have in `{name}` have other numbers: {example}",
        )


def _numberings(kind: Alike) -> Iterator[tuple[str, dict[str, int]]]:
    """The numberings of names that a loader's dataset keeps, by the attribute."""
    dataset: Any = kind.first.dataset
    for _ in range(4):  # a part of a part of it; one may give itself
        inner = getattr(dataset, "dataset", None)
        if inner is None or not length(inner):
            break
        dataset = inner
    kept = sorted(getattr(dataset, "__dict__", {}).items())
    dicts = [(name, _numbers(value)) for name, value in kept if isinstance(value, dict)]
    yield from dicts
    for name, value in kept:  # a list that is not what a dict beside it says, or that no row counts by, is no numbering
        numbers = {} if isinstance(value, dict) else _numbers(value)
        if not any(_are_codes(each, length(dataset), len(numbers)) for _, each in kept):
            continue
        if numbers and not any(numbers.keys() <= each.keys() for _, each in dicts):
            yield name, numbers


def _are_codes(value: Any, rows: int | None, names: int) -> bool:
    """Whether it is an array of the numbers of each row's name, as `pandas.factorize` gives it."""
    if type(value).__module__ != "numpy" or getattr(value, "ndim", 0) != 1 or value.dtype.kind not in "iu":
        return False
    return len(value) == rows and 0 < names < len(value) and value.min() >= 0 and value.max() < names


def _numbers(value: Any) -> dict[str, int]:
    """The numbers of names, by a dict that has consecutive ones, or by a list in which each name is once."""
    if isinstance(value, dict) and 1 < len(value) <= MOST_NAMES:
        names = list(value.items())
        if all(isinstance(name, str) and type(number) is int for name, number in names):
            numbers = sorted(number for _, number in names)
            return dict(names) if numbers == list(range(numbers[0], numbers[0] + len(numbers))) else {}
    if type(value).__module__.partition(".")[0] in ("numpy", "pandas") and getattr(value, "ndim", 0) == 1:
        value = value.tolist() if len(value) <= MOST_NAMES else ()
    if isinstance(value, (list, tuple)) and 1 < len(value) <= MOST_NAMES and all(type(each) is str for each in value):
        return {name: number for number, name in enumerate(value)} if len(set(value)) == len(value) else {}
    return {}
