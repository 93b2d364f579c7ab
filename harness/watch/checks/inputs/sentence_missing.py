from __future__ import annotations

from dataclasses import dataclass

from harness.watch.check import Check
from harness.watch.events import DatasetMade, End, Forward, InnerForward
from harness.watch.facts.datasets import PAIRS
from harness.watch.facts.tokens import Tokens
from harness.watch.monitor import Monitor

MIN_ROWS = 16
"""Rows that are looked at before something is said of all of them. A guess."""

MIN_SHARE_OF_EQUAL_PAIRS = 0.9
"""Share of the pairs above which two equal sentences are no coincidence. A guess."""


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
    Whether two sentences mean the same cannot be told from one of them. The model learns what the first alone gives
    away, which is little more than how often each class comes.

    ## What to do
    Tokenize both: tokenizer(example[first], example[second], truncation=True).

    ## When it is right
    A dataset from which one of the two columns was removed is not reported: one of them is meant. Nor is one with other
    columns than those that are known to belong together (sentence1 and sentence2, premise and hypothesis, ...).
    """

    id = "inputs::sentence-missing"
    needs = "tokenized pairs"
    formerly = ("inputs::both-sentences",)

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.tokens = monitor.fact(Tokens)
        self.pair: tuple[str, str] | None = None
        """The columns of the latest dataset that has a known pair of them."""
        self.seen = Counts()

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
        self._count()

    def on_inner_forward(self, event: InnerForward) -> None:
        self._count()

    def _count(self) -> None:
        if segments := self.tokens.segments:
            self.seen.rows += segments.rows
            self.seen.pairs += len(segments.pairs)
            self.seen.without_second += segments.without_second
            self.seen.twice += segments.twice

    def on_end(self, event: End) -> None:
        observed = self._observed() if self.seen.rows >= MIN_ROWS else None
        self.looked = self.pair is not None and self.seen.rows >= MIN_ROWS
        if self.pair is not None and observed is not None:
            self.found(
                expected=f"{self.pair[0]} and {self.pair[1]}, both in each row",
                observed=observed,
                where=self.tokens.separated_at,
                update=1,
            )

    def _observed(self) -> str | None:
        seen = self.seen
        if seen.pairs == 0 and seen.without_second == 0:
            return "the rows that reach the model have one segment only"
        if seen.twice > MIN_SHARE_OF_EQUAL_PAIRS * seen.pairs:
            return f"in {seen.twice} of {seen.pairs} rows one of them comes twice"
        if seen.without_second > seen.pairs:
            return f"in {seen.without_second} of {seen.rows} rows the second is cut off wholly"
        return None
