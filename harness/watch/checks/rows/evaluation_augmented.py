from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

from harness.watch.check import Check
from harness.watch.events import Batch, End
from harness.watch.facts.batches import sample_digest
from harness.watch.facts.datasets import base, plain
from harness.watch.facts.passes import Passes
from harness.watch.monitor import Monitor

ENOUGH_ROWS = 4
"""Smallest number of rows that are compared. Neither half nor double of it changes a verdict of the corpus."""


class EvaluationAugmented(Check):
    """The evaluation's rows are changed at random, as those to train on are: both are parts of one dataset.

    ## Why is this a bug?
    `random_split` and `Subset` select rows of a dataset and keep its transform. An augmentation that was meant for the
    training then shifts, crops and distorts the validation rows too: each evaluation is on different inputs, harder
    than those that the model will meet, and the best epoch is the one with the luckiest draw.

    ## What to do
    Right where the evaluation is meant to be on augmented rows; otherwise give the validation part a dataset without
    the augmentation.

    Make the dataset twice, once with the training's transform and once without, and take the same indices of each.

    ## When it is right
    Ignore this warning if you measure robustness against the changes, or if the task is to undo them. Only datasets of
    an input and a class are looked at, and only if training and evaluation share one.

    ## References
    - https://discuss.pytorch.org/t/120835
    """

    needs = "second pass over the same labelled rows"
    severity = "warning"

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.passes = monitor.fact(Passes)
        self.first: WeakKeyDictionary[Any, tuple[Any, list[bytes], list[int]]] = WeakKeyDictionary()
        """By loader, the first batch: its indices, the rows that the dataset gave, and their classes."""
        self.changed: WeakKeyDictionary[Any, int] = WeakKeyDictionary()
        """Loaders whose second pass began with the same rows, of the same classes: how many, if all had changed."""

    def on_batch(self, event: Batch) -> None:
        if event.of.batches > 1 or event.of.number > 2 or not isinstance(event.samples, list):
            return
        classes = [_class_of(sample) for sample in event.samples]
        known = [each for each in classes if each is not None]
        if len(known) < max(ENOUGH_ROWS, len(classes)):
            return
        rows = [sample_digest(sample) for sample in event.samples]
        indices, before, their_classes = self.first.setdefault(event.of.loader, (event.indices, rows, known))
        if event.of.number == 2 and indices == event.indices and their_classes == known:
            self.changed[event.of.loader] = 0 if set(rows) & set(before) else len(rows)

    def on_end(self, event: End) -> None:
        training = self.passes.training()
        loaders = {id(each.first.loader) for each in training}
        datasets = {base(each.first.dataset)[0] for each in training}
        for each in self.passes.evaluating():
            loader = each.first.loader
            changed = self.changed.get(loader)
            if changed is None or id(loader) in loaders:
                continue
            self.looked |= not changed
            if changed and base(loader.dataset)[0] in datasets:
                self.found(
                    expected="the same rows in each evaluation",
                    observed=f"all {changed} rows of its first batch are others the next time, of the "
                    "same classes; training and evaluation share one dataset",
                    where=each.first.where,
                )
                return


def _class_of(sample: Any) -> int | None:
    label = plain(sample[-1]) if isinstance(sample, (list, tuple)) and len(sample) > 1 else None
    return label if isinstance(label, int) else None
