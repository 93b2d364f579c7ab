from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import sqrt
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

import torch
from torch.utils.data import Subset

from harness.watch.bounded import First, FirstByKey
from harness.watch.check import HELD, NOTHING_TO_JUDGE, Check, Found, Held, NothingToJudge, Verdict
from harness.watch.events import Batch, End, Pass
from harness.watch.facts.datasets import base, length, plain, row_hashes
from harness.watch.facts.samplers import chosen_rows, has_torchs_own_sampler
from harness.watch.monitor import CLOSELY
from harness.watch.run.batches import sample_digest
from harness.watch.run.evaluations import Evaluation
from harness.watch.run.passes import Alike, Passes
from harness.watch.run.rows import MOST_ROWS, TrainedRows
from harness.watch.run.slices import MIN_ROWS

CHANCE = 0.02
"""Share of an evaluation's rows that may be training rows by chance: short texts occur twice in many corpora."""

MIN_RATIO_TO_NATURAL_REPEATS = 5
"""How many times as large as the share of repeated rows within the training set the share of common rows must be."""

MIN_DEVIATIONS = 3
"""How many standard deviations there must be more common rows than in a set that was drawn like the training set, in
which a row has a like among the training rows twice as often as one of these repeats an earlier one. By reasoning."""

ENOUGH_ROWS = 4
"""Smallest number of rows that are compared."""


ENOUGH_VALUES = 16
"""Different values of a row from which on most of them in another row are no chance: a drawing in black and white has
two."""

FEW_ROWS = 8
"""Rows of a batch whose values are kept."""

UNTOLD = "the rows that a line evaluates are few, others each time, or not told apart by their content"

MOST_VALUES = 1_000_000
"""Numbers of a row that are looked at: those of a large image."""

CARRIED = (
    "Make a new model, optimizer and scheduler for each split: a model that goes on to the next split is trained on "
    "rows that it was, or will be, evaluated on."
)
"""What to do where the split is right and the model is not new."""


class EvaluatedOnTrainingRows(Check):
    """The evaluation uses training rows.

    ## Why is this a bug?
    A model knows the rows that it was trained on: the result says how well it remembers, not how well it will do on new
    rows, and it keeps rising long after the model has begun to overfit.

    ## What to do
    Evaluate on the validation split, and split the rows once, before anything else.

    ## When it is right
    An evaluation on the training rows alongside one on other rows, to compare the two, is not reported. Neither are the
    folds of a cross-validation, in which each model has rows of its own, or a few texts that occur in both splits. A
    pass over the training rows that reads what the model makes of them, without a metric or a mean loss (features to
    cluster, a threshold for what is unusual, the loss of each row), is not an evaluation.

    Rows that come from no loader, or change on their way to the model, are known by what the model is given. Where all
    of them were trained on, or all that were trained on are among them, nothing is reported; where some were, it is a
    warning, since a row may be in two splits for a reason. Rows that were trained on and come first, or last, in calls
    of their own may be a training score that the same line computes.
    """

    needs = "evaluation whose rows are known"

    def begin(self) -> None:
        self._passes = self.fact(Passes)
        self._scored: WeakSet[Pass] = WeakSet()
        """Passes that said how good a model is; those that only read its outputs are no evaluation."""
        self._trained = self.fact(TrainedRows)
        self._asked = FirstByKey[tuple[int, str | None], _Asked]()
        """Questions by the model's number and the line that calls it."""
        self._unscored = FirstByKey[tuple[int, str | None], First[torch.Tensor]]()
        """The rows of those of which nothing is known to have scored the answers."""

    def on_evaluation(self, fact: Evaluation) -> None:
        if fact.of is not None and fact.scored:
            self._scored.add(fact.of)
        key = fact.model, fact.where
        if fact.asked and not fact.scored and self._unscored.takes(key):
            for rows in fact.asked:
                self._unscored.setdefault(key, First()).append(rows)
        if fact.by_row:
            self.says(NothingToJudge("what was computed for each row may choose among rows"))
        elif not fact.scored:
            self.says(NothingToJudge("calls that nothing scores are no evaluation"))
        if fact.scored and not fact.by_row and not fact.of_training_loader and self._asked.takes(key):
            self._asked.setdefault(key, _Asked(fact.rows, fact.parts, fact, set())).add(fact)

    def on_end(self, event: End) -> None:
        trained = self._datasets(self._passes.training())
        loaders = {id(each.of.loader) for each in trained}
        evaluating = self._passes.evaluating()
        evaluated = [each for each in self._datasets(evaluating) if id(each.of.loader) not in loaders]
        known = self._scored
        scored = {id(k.first.loader) for k in evaluating if k.first in known or k.latest in known}
        models = {each.of.model for each in trained}
        overlaps = []
        for evaluation in evaluated:
            # Another model's rows are another fold's; a model that was only loaded may be any of them.
            its = [t for t in trained if t.of.model == evaluation.of.model or evaluation.of.model not in models]
            overlaps.append((evaluation, *_overlap(its, evaluation), _is_of_another_fold(its, evaluation), bool(its)))
        clean = any(not rows for _, rows, _, _, _ in overlaps)
        for evaluation, rows, size, carried, judged in overlaps:
            beside = rows == size and (
                clean or id(evaluation.of.loader) not in scored
            )  # evaluated beside others, or only read
            if not beside if rows else judged:
                self.says(self.judge(size, rows, carried=bool(rows) and carried), evaluation.of.where)
        if not any(rows for _, rows, _, _, _ in overlaps):
            self._look_at_known()

    def _look_at_known(self) -> None:
        """Judge rows, told apart by what the model was given, of which none were trained on, or some and not all.

        Where all were, or all that were trained on are among them, it may be meant: a training accuracy, or one of the
        whole dataset. Some in one evaluation alone may be what a script looks at while it is made.
        """
        for (model, where), asked in self._asked.items():
            trained, rows = self._trained.of.get(model), len(asked.rows)
            both = len(asked.rows & (trained or set()))
            if not trained or rows < MIN_ROWS or (both and model in self._trained.alike and not asked.measured):
                self.says(
                    NothingToJudge(UNTOLD if trained else "of the model that is evaluated, no training row is known")
                )
                continue
            again = len(asked.rounds) > 1 or asked.first.update == self.monitor.updates_made
            some = max(2, CHANCE * rows) <= both < min(rows, len(trained)) and asked.is_one_evaluation(trained)
            some = some and len(trained) < MOST_ROWS  # else all may have been, and be meant
            all_known = len(trained) < MOST_ROWS and (len(asked.rounds) > 1 or self._all_known)
            meant = not (some and again)
            self.says(self.judge(rows, both, by_content=True, meant=meant, all_known=all_known), where)
        for (model, _), kept in self._unscored.items():
            if trained := self._trained.of.get(model):
                of_it = {row for rows in kept for row in rows.tolist()}
                all_known = len(trained) < MOST_ROWS and self._all_known and not kept.is_full
                self.says(self.judge(len(of_it), len(of_it & trained), meant=True, all_known=all_known))

    @property
    def _all_known(self) -> bool:
        """Whether all rows that were trained on are remembered: of a loader's batches, those of the updates that are
        looked at are, and none that a cut left out."""
        by_loader = next(iter(self._passes.training()), None) is not None
        looked_at = self.monitor.options.every == 1 and self.monitor.updates_made <= CLOSELY
        return not self.monitor.passes_shortened and (looked_at or not by_loader)

    def _datasets(self, kinds: Iterable[Alike]) -> list[_Rows]:
        """The first pass of each loader with each model."""
        found: dict[tuple[int, int | None], _Rows] = {}
        for of in (each.first for each in kinds):
            beginning = self._passes.beginnings.get(of)
            rows = Counter[bytes]() if beginning is None else beginning.rows
            chosen = chosen_rows(of.loader)
            dataset = of.dataset if chosen is None else Subset(of.dataset, chosen)
            drawn = set[int]()
            if chosen is None and beginning is not None and not has_torchs_own_sampler(of.loader):
                drawn = set(beginning.at)
            found.setdefault((id(of.loader), of.model), _Rows(of, dataset, base(dataset), drawn, rows))
        return list(found.values())

    @staticmethod
    def judge(
        rows: int,
        trained: int,
        *,
        carried: bool = False,
        by_content: bool = False,
        meant: bool = False,
        all_known: bool = True,
    ) -> Verdict:
        """Rows that were evaluated, and the training rows among them.

        They may be training rows of another split, from which the model was ``carried`` on, or known ``by_content``
        alone, and not by a loader's dataset; or ``meant`` to be looked at. Of none, it has to be known that all others
        are remembered."""
        if not trained:
            if all_known:
                return Held(f"{rows:,} evaluated rows, none of them trained on")
            return NothingToJudge("more rows were trained on, or evaluated, than are remembered")
        if meant:
            return NothingToJudge(f"{trained} of {rows} evaluated rows were trained on, which may be meant")
        what = "all" if trained == rows else str(trained)
        return Found(
            expected="evaluation rows that were not trained on",
            observed=f"{what} of the {rows} evaluation rows {'was' if trained == 1 else 'were'} trained on"
            + (" in another split: the script goes on with the same model" if carried else ""),
            hint=CARRIED if carried else None,
            may_be_meant=by_content,
        )


@dataclass(eq=False)
class _Asked:
    """What a line asked a model about, again and again."""

    rows: frozenset[int]
    parts: Sequence[Sequence[int]]
    """Rows of each call."""
    first: Evaluation
    rounds: set[int]
    """Updates that had been made: the first two, and the latest."""

    @property
    def measured(self) -> bool:
        """Whether they can be told from one another, however often they come."""
        return self.first.measured

    def add(self, evaluation: Evaluation) -> None:
        """Another evaluation; of other rows it is none that this tells anything of."""
        if self.rows != evaluation.rows or (evaluation.some_twice and not self.measured):
            self.rows = frozenset()
        self.rounds = {*sorted(self.rounds)[:2], evaluation.update}

    def is_one_evaluation(self, trained: set[int]) -> bool:
        """Whether rows that were trained on come among others, and not all before or behind them.

        Else a line that is called for the training rows and then for others may have asked about both.
        """
        kinds = [[row in trained for row in part] for part in self.parts if part]
        several = [all(part) for part in kinds if all(part) or not any(part)]
        return len(several) < len(kinds) or sum(one != other for one, other in pairwise(several)) > 2


@dataclass(frozen=True)
class _Rows:
    """The rows of a pass."""

    of: Pass
    dataset: Any
    """The part of it that the sampler chooses."""
    base: tuple[int, frozenset[int] | None]
    """Dataset and rows, as :func:`harness.watch.facts.datasets.base` has them."""
    drawn: set[int]
    """Places in the dataset that a sampler drew, where nobody knows what it chooses among."""
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
    for other in trained:
        if other.base[0] == evaluated.base[0]:
            of, among = evaluated.base[1], other.base[1]
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
        repeats, total = theirs.total() - len(theirs), max(1, theirs.total())
        natural = repeats / total
        common = sum(row in theirs for row in mine)
        by_chance = 2 * (repeats + 1) / total * len(mine)  # the next repeat may be about to come
        is_many = common >= max(2, CHANCE * len(mine), by_chance + MIN_DEVIATIONS * sqrt(by_chance))
        if is_many and common / len(mine) > MIN_RATIO_TO_NATURAL_REPEATS * natural:
            return common
    return 0


class EvaluationAugmented(Check):
    """The evaluation rows are augmented at random, so each evaluation sees different inputs.

    ## Why is this a bug?
    `random_split` and `Subset` select rows of a dataset and keep its transform. An augmentation that was meant for the
    training then shifts, crops and distorts the validation rows too: each evaluation is on different inputs, harder
    than those that the model will meet, and the best epoch is the one with the luckiest draw. The same comes of a
    random crop or flip in the transform of a test set of its own.

    ## What to do
    Give the validation split a dataset without the augmentation. Ignore this if you want to evaluate on augmented rows.

    Make the dataset twice, once with the training's transform and once without, and take the same indices of each.

    ## When it is right
    Ignore this warning if you measure robustness against the changes, or if the task is to undo them. Only datasets of
    an input and a class are looked at, and only if training and evaluation share one, or if a row has most of its
    values again in other places, as a shifted, flipped or cropped one does.

    ## References
    - https://discuss.pytorch.org/t/120835
    """

    severity = "warning"

    needs = "second evaluation over a dataset of an input and a class"

    def begin(self) -> None:
        self._passes = self.fact(Passes)
        self._first: WeakKeyDictionary[Any, tuple[Any, list[bytes], list[int]]] = WeakKeyDictionary()
        """Loader to its first batch: its indices, the rows that the dataset gave, and their classes."""
        self._changed: WeakKeyDictionary[Any, int] = WeakKeyDictionary()
        """Loaders whose second pass began with the same rows, of the same classes: how many had changed."""
        self._values: WeakKeyDictionary[Any, list[torch.Tensor | None]] = WeakKeyDictionary()
        """The different values of each row of the first batch."""
        self._moved: WeakSet[Any] = WeakSet()
        """Loaders whose second pass began with rows that had changed and had most of those again."""

    def on_batch(self, event: Batch) -> None:
        if event.of.batches > 1 or event.of.number > 2 or not isinstance(event.samples, list):
            return
        classes = [_class_of(sample) for sample in event.samples]
        known = [each for each in classes if each is not None]
        if len(known) < max(ENOUGH_ROWS, len(classes)):
            return
        rows = [sample_digest(sample) for sample in event.samples]
        indices, before, their_classes = self._first.setdefault(event.of.loader, (event.indices, rows, known))
        values = [_values(sample) for sample in event.samples[:FEW_ROWS]]
        if event.of.number == 1:
            self._values[event.of.loader] = values
        elif indices == event.indices and their_classes == known:
            changed = [row != other for row, other in zip(rows, before, strict=True)]
            self._changed[event.of.loader] = sum(changed)
            earlier = self._values.get(event.of.loader, [])
            if any(each and _shared(*pair) for each, *pair in zip(changed, values, earlier, strict=False)):
                self._moved.add(event.of.loader)

    def on_end(self, event: End) -> None:
        training = self._passes.training()
        loaders = {id(each.first.loader) for each in training}
        datasets = {base(each.first.dataset)[0] for each in training}
        for loop in self._passes.evaluating():
            loader = loop.first.loader
            changed = self._changed.get(loader)
            if changed is not None and id(loader) not in loaders:
                shares = base(loader.dataset)[0] in datasets
                verdict = self.judge(len(self._first[loader][1]), changed, shares, moved=loader in self._moved)
                self.says(verdict, loop.first.where)

    @staticmethod
    def judge(rows: int, changed: int, shares_dataset: bool = False, *, moved: bool = False) -> Verdict:
        """Rows of the first batch of an evaluation, and those that came otherwise the second time; whether the training
        goes through the same dataset, and whether one of them came with most of its values again in other places."""
        if not changed:
            return HELD
        shares = shares_dataset and changed == rows
        if not shares and not moved:
            return NOTHING_TO_JUDGE
        how = (
            "training and evaluation share one dataset" if shares else "most of their values have moved to other places"
        )
        return Found(
            expected="the same rows in each evaluation",
            observed=f"{changed} of the {rows} rows of the first batch have changed by the next evaluation, "
            f"but not their classes; {how}",
        )


def _values(sample: Any) -> torch.Tensor | None:
    """The different values of a row's input, if they are real numbers and enough to tell rows apart."""
    given = sample[0] if isinstance(sample, (list, tuple)) and sample else None
    if not torch.is_tensor(given) or not given.is_floating_point() or given.numel() > MOST_VALUES:
        return None
    values = torch.unique(given.detach().cpu())
    return values if len(values) >= ENOUGH_VALUES else None


def _shared(values: torch.Tensor | None, earlier: torch.Tensor | None) -> bool:
    """Whether most of the values were there before."""
    return values is not None and earlier is not None and float(torch.isin(values, earlier).float().mean()) > 0.5


def _class_of(sample: Any) -> int | None:
    label = plain(sample[-1]) if isinstance(sample, (list, tuple)) and len(sample) > 1 else None
    return label if isinstance(label, int) else None
