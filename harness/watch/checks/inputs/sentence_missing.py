from __future__ import annotations

from dataclasses import dataclass

import torch

from harness.watch.check import Check
from harness.watch.events import BackwardBegins, DatasetMade, End, Forward, InnerForward
from harness.watch.facts.batches import labels_of
from harness.watch.facts.datasets import PAIRS
from harness.watch.facts.tokens import Tokens
from harness.watch.monitor import Monitor

MIN_ROWS = 16
"""Rows that are looked at before something is said of all of them. Neither half nor double of it changes a verdict of
the corpus."""

MIN_SHARE = 0.9
"""Share of the rows from which on something is said of them all: a text may hold a separator, and two sentences may be
equal by coincidence. Neither half nor double of it changes a verdict of the corpus."""


@dataclass
class Counts:
    """Over the rows that were looked at."""

    rows: int = 0
    pairs: int = 0
    without_second: int = 0
    twice: int = 0


class SentenceMissing(Check):
    """One sentence of each pair does not reach the model.

    ## Why is this a bug?
    One sentence alone does not show whether two sentences mean the same. The model learns what the first one gives
    away, which is little more than how often each class occurs. If it is trained on pairs and evaluated on single
    sentences, the evaluation does not measure what was learned.

    ## What to do
    Tokenize both: tokenizer(example[first], example[second], truncation=True).

    ## When it is right
    A dataset from which one of the two columns was removed is not reported: a single sentence is intended. Neither are
    bi-encoders, which get each sentence on its own, rows that do not have a label each, or a dataset without columns
    that are known to belong together (sentence1 and sentence2, premise and hypothesis, ...).
    """

    needs = "tokenized pairs"
    formerly = ("inputs::both-sentences",)

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.tokens = monitor.fact(Tokens)
        self.pair: tuple[str, str] | None = None
        """The columns of the latest dataset that has a known pair of them."""
        self.trained: dict[int, Counts] = {}
        """By the model's number."""
        self.evaluated: dict[int, Counts] = {}
        self.given: dict[int, tuple[int | None, int]] = {}
        """Since the latest backward pass, by model: the number of the batch, and a hash of its first rows' ids."""
        self.each_alone = False
        """Whether a model was given several rows of ids for one loss."""

    def on_dataset_made(self, event: DatasetMade) -> None:
        columns = set(event.dataset.column_names or ())
        if "input_ids" in columns:
            return
        for pair in PAIRS:
            if columns.issuperset(pair):
                self.pair = pair
            elif pair == self.pair and columns.intersection(pair):
                self.pair = None  # somebody left one of them out

    def on_forward(self, event: Forward) -> None:
        self._count(event)

    def on_inner_forward(self, event: InnerForward) -> None:
        self._count(event)

    def on_backward_begins(self, event: BackwardBegins) -> None:
        self.given.clear()

    def _count(self, event: Forward) -> None:
        segments, ids = self.tokens.segments, self.tokens.ids
        if segments is None or ids is None:
            return
        training = torch.is_grad_enabled()
        if training:
            self._see_alone(event, ids)
        labels = labels_of(event.tensors) or (labels_of(event.batch.data) if event.batch is not None else None)
        if labels is None or len(labels) != segments.rows:
            return
        model = self.monitor.number_of(event.model)
        seen = (self.trained if training else self.evaluated).setdefault(model, Counts())
        seen.rows += segments.rows
        seen.pairs += len(segments.pairs)
        seen.without_second += segments.without_second
        seen.twice += segments.twice

    def _see_alone(self, event: Forward, ids: torch.Tensor) -> None:
        number = None if event.batch is None else event.batch.number
        now = number, hash(repr(ids[:4].tolist()))
        before = self.given.setdefault(self.monitor.number_of(event.model), now)
        self.each_alone = self.each_alone or (before[0] == number and before != now)

    def on_end(self, event: End) -> None:
        if self.pair is None or self.each_alone:
            return
        self.looked = any(seen.rows >= MIN_ROWS for seen in self.trained.values())
        where, twice = self._tokenized_twice()
        for model, seen in self.trained.items():
            observed = twice or _observed(seen) or self._in_the_evaluation(model, seen)
            if observed is not None:
                self.found(
                    expected=f"{self.pair[0]} and {self.pair[1]}, both in each row",
                    observed=observed,
                    where=where or self._tokenized_singly() or self.tokens.separated_at,
                    update=1,
                )

    def _tokenized_twice(self) -> tuple[str | None, str | None]:
        for where, calls in self.tokens.calls.items():
            if calls.rows >= MIN_ROWS and calls.twice > MIN_SHARE * calls.rows:
                return where, f"in {calls.twice} of {calls.rows} rows one of them comes twice"
        return None, None

    def _tokenized_singly(self) -> str | None:
        """The place of the latest call of the tokenizer that was given no pairs."""
        return next((where for where, calls in reversed(self.tokens.calls.items()) if not calls.pairs), None)

    def _in_the_evaluation(self, model: int, trained: Counts) -> str | None:
        seen = self.evaluated.get(model, Counts())
        if trained.pairs < max(MIN_ROWS, MIN_SHARE * trained.rows) or seen.rows < MIN_ROWS:
            return None
        if seen.pairs or seen.without_second:
            return None
        return "the model is trained on pairs; in the evaluation its rows have one segment only"


def _observed(seen: Counts) -> str | None:
    if seen.rows < MIN_ROWS:
        return None
    if seen.pairs == 0 and seen.without_second == 0:
        return "the rows that reach the model have one segment only"
    if seen.twice > MIN_SHARE * seen.pairs:
        return f"in {seen.twice} of {seen.pairs} rows one of them comes twice"
    if seen.without_second > seen.pairs:
        return f"in {seen.without_second} of {seen.rows} rows the second is cut off wholly"
    return None
