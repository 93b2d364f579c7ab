from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from torch.utils.data import Subset

from harness.watch.check import Check
from harness.watch.events import End, Pass
from harness.watch.facts.datasets import base, length, row_hashes
from harness.watch.facts.passes import Alike, Passes
from harness.watch.facts.samplers import chosen_rows, has_torchs_own_sampler
from harness.watch.facts.scored_passes import ScoredPasses
from harness.watch.monitor import Monitor

CHANCE = 0.02
"""Share of an evaluation's rows that may be training rows by chance: short texts occur twice in many corpora. Neither
half nor double of it changes a verdict of the corpus."""

MIN_RATIO_TO_NATURAL_REPEATS = 5
"""How many times as large as the share of repeated rows within the training set the share of common rows must be.
Neither half nor double of it changes a verdict of the corpus."""

CARRIED = (
    "Make a new model, and its optimizer and scheduler, for each split: one that goes on to the next split is trained "
    "on the rows that it was, or will be, evaluated on."
)
"""What to do where the split is right and the model is not new."""


class EvaluatedOnTrainingRows(Check):
    """The evaluation is on rows that were trained on.

    ## Why is this a bug?
    A model knows the rows that it was trained on: the result says how well it remembers, not how well it will do on new
    rows, and it keeps rising long after the model has begun to overfit.

    ## What to do
    Evaluate on the validation split; split the rows once, before anything else.

    ## When it is right
    An evaluation on the training rows alongside one on other rows, to compare the two, is not reported. Neither are the
    folds of a cross-validation, in which each model has rows of its own, or a few texts that occur in both splits. A
    pass over the training rows that reads what the model makes of them, without a metric or a mean loss (features to
    cluster, a threshold for what is unusual, the loss of each row), is not an evaluation.
    """

    needs = "evaluation over a DataLoader"
    formerly = ("rows::evaluation-rows-unseen",)

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.passes = monitor.fact(Passes)
        self.scored = monitor.fact(ScoredPasses)

    def on_end(self, event: End) -> None:
        trained = self._datasets(self.passes.training())
        loaders = {id(each.of.loader) for each in trained}
        evaluating = self.passes.evaluating()
        evaluated = [each for each in self._datasets(evaluating) if id(each.of.loader) not in loaders]
        scored = {id(k.first.loader) for k in evaluating if k.first in self.scored.all or k.latest in self.scored.all}
        models = {each.of.model for each in trained}
        overlaps = []
        for each in evaluated:
            # Another model's rows are another fold's; a model that was only loaded may be any of them.
            its = [t for t in trained if t.of.model == each.of.model or each.of.model not in models]
            self.looked |= bool(its)
            overlaps.append((each, *_overlap(its, each), _is_of_another_fold(its, each)))
        clean = any(not rows for _, rows, _, _ in overlaps)
        for each, rows, size, carried in overlaps:
            read = id(each.of.loader) not in scored
            if not rows or (rows == size and (clean or read)):
                continue  # the training rows are evaluated beside others, or only read
            what = "all" if rows == size else str(rows)
            self.found(
                expected="an evaluation on rows that were not trained on",
                observed=f"{what} of its {size} rows are training rows"
                + (", of another split: the model goes on from one split to the next" if carried else ""),
                where=each.of.where,
                hint=CARRIED if carried else None,
            )

    def _datasets(self, kinds: Iterable[Alike]) -> list[_Rows]:
        """The first pass of each loader with each model."""
        found: dict[tuple[int, int | None], _Rows] = {}
        for of in (each.first for each in kinds):
            beginning = self.passes.beginnings.get(of)
            rows = Counter[bytes]() if beginning is None else beginning.rows
            chosen = chosen_rows(of.loader)
            dataset = of.dataset if chosen is None else Subset(of.dataset, chosen)
            drawn = set[int]()
            if chosen is None and beginning is not None and not has_torchs_own_sampler(of.loader):
                drawn = set(beginning.at)
            found.setdefault((id(of.loader), of.model), _Rows(of, dataset, base(dataset), drawn, rows))
        return list(found.values())


@dataclass(frozen=True)
class _Rows:
    """The rows of a pass."""

    of: Pass
    dataset: Any
    """The part of it that the sampler chooses."""
    base: tuple[int, frozenset[int] | None]
    """As :func:`harness.watch.facts.datasets.base` has them."""
    drawn: set[int]
    """Of a sampler of which nobody knows what it chooses among: places in the dataset that it drew."""
    seen: Counter[bytes]

    def is_apart_from(self, other: _Rows) -> bool:
        """Whether samplers have split one dataset: what they have drawn of it has nothing in common."""
        mine, its = (each.drawn or each.base[1] for each in (self, other))
        chosen = bool(self.drawn or other.drawn) and self.of.dataset is other.of.dataset
        return chosen and bool(mine) and bool(its) and not set(mine or ()) & set(its or ())


def _is_of_another_fold(trained: Sequence[_Rows], evaluated: _Rows) -> bool:
    """Whether what was trained on right before are other rows: then only another split has the evaluation's."""
    before = [each for each in trained if each.of.updates_before < evaluated.of.updates_before]
    latest = max(before, key=lambda each: each.of.updates_before, default=None)
    return latest is not None and not _overlap([latest], evaluated)[0]


def _overlap(trained: Sequence[_Rows], evaluated: _Rows) -> tuple[int, int]:
    """How many rows of an evaluation were among those to train on, and how many it has."""
    size = length(evaluated.dataset) or 0
    trained = [each for each in trained if not each.is_apart_from(evaluated)]
    for each in trained:
        if each.base[0] == evaluated.base[0]:
            of, among = evaluated.base[1], each.base[1]
            rows = (size if among is None else len(among)) if of is None or among is None else len(of & among)
            if rows:
                return rows, size
    mine = row_hashes(evaluated.dataset)
    if mine is None:  # a dataset of the script's own: what came in batches of both
        return _common(evaluated.seen, [each.seen for each in trained]), size
    theirs = (row_hashes(each.dataset) for each in trained)
    return _common(mine, (Counter(rows) for rows in theirs if rows)), size


def _common(mine: Iterable[int | bytes], trained: Iterable[Counter[int] | Counter[bytes]]) -> int:
    """How many rows are among those of a training set, where that is no chance; 0 where it may be."""
    mine = list(mine)
    for theirs in trained:
        natural = 1 - len(theirs) / max(1, theirs.total())
        common = sum(row in theirs for row in mine)
        if common >= max(2, CHANCE * len(mine)) and common / len(mine) > MIN_RATIO_TO_NATURAL_REPEATS * natural:
            return common
    return 0
