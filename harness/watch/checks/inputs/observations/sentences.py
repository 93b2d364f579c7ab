"""Sentences: whether both of a pair reach the model, in training and in the evaluation."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch

from harness.watch.events import BackwardBegins, DatasetMade, End, Fact, Forward
from harness.watch.facts.datasets import PAIRS
from harness.watch.facts.tokens import Calls, Tokens, TokensGiven
from harness.watch.recogniser import Recogniser
from harness.watch.run.batches import labels_of

MIN_ROWS = 16
"""Rows that are looked at before something is said of all of them."""

MIN_SHARE = 0.9
"""Share of the rows from which on something is said of them all: a text may hold a separator, and two sentences may be
equal by coincidence."""


@dataclass
class Counts:
    """Over the rows that were looked at."""

    rows: int = 0
    pairs: int = 0
    without_second: int = 0
    twice: int = 0


class PairsOverTraining(Fact):
    """A training is over on rows of a dataset of pairs. ``where`` is the call of the tokenizer that left one sentence
    out, or the latest forward pass."""

    needs = "tokenized pairs"
    of_run = True
    columns: tuple[str, str]
    trained: Counts
    evaluated: Counts = field(default_factory=Counts)
    tokenized_twice: Calls | None = None
    """The tokenizer's calls in one line, where nearly all of them were given a text with itself."""


class Sentences(Recogniser):
    makes = (PairsOverTraining,)

    def begin(self) -> None:
        self._tokens = self.fact(Tokens)
        self._pair: tuple[str, str] | None = None
        """The columns of the latest dataset that has a known pair of them."""
        self._trained: dict[int, Counts] = {}
        """Counts by the model's number."""
        self._evaluated: dict[int, Counts] = {}
        self._given: dict[int, tuple[int | None, int]] = {}
        """Since the latest backward pass, by model: the number of the batch, and a hash of its first rows' ids."""
        self._each_alone = False
        """Whether a model was given several rows of ids for one loss."""

    def on_dataset_made(self, event: DatasetMade) -> None:
        columns = set(event.dataset.column_names or ())
        if "input_ids" in columns:
            return
        for pair in PAIRS:
            if columns.issuperset(pair):
                self._pair = pair
            elif pair == self._pair and columns.intersection(pair):
                self._pair = None  # somebody left one of them out

    def on_backward_begins(self, event: BackwardBegins) -> None:
        self._given.clear()

    def on_tokens(self, fact: TokensGiven) -> None:
        segments, event = fact.segments, fact.forward
        if segments is None:
            return
        training = torch.is_grad_enabled()
        if training:
            self._see_alone(event, fact.ids)
        labels = labels_of(event.tensors) or (labels_of(event.batch.data) if event.batch is not None else None)
        if labels is None or len(labels) != segments.rows:
            return
        model = self.monitor.number_of(event.model)
        seen = (self._trained if training else self._evaluated).setdefault(model, Counts())
        seen.rows += segments.rows
        seen.pairs += len(segments.pairs)
        seen.without_second += segments.without_second
        seen.twice += segments.twice

    def _see_alone(self, event: Forward, ids: torch.Tensor) -> None:
        number = None if event.batch is None else event.batch.number
        now = number, hash(repr(ids[:4].tolist()))
        before = self._given.setdefault(self.monitor.number_of(event.model), now)
        self._each_alone = self._each_alone or (before[0] == number and before != now)

    def on_end(self, event: End) -> None:
        if self._pair is None or self._each_alone:
            return
        where, twice = self._tokenized_twice()
        where = where or self._tokenized_singly() or self._tokens.separated_at
        for model, trained in self._trained.items():
            self.tell(
                PairsOverTraining(
                    columns=self._pair,
                    trained=trained,
                    evaluated=self._evaluated.get(model, Counts()),
                    tokenized_twice=twice,
                    where=where,
                )
            )

    def _tokenized_twice(self) -> tuple[str | None, Calls | None]:
        for where, calls in self._tokens.calls.items():
            if calls.rows >= MIN_ROWS and calls.twice > MIN_SHARE * calls.rows:
                return where, calls
        return None, None

    def _tokenized_singly(self) -> str | None:
        """The place of the latest call of the tokenizer that was given no pairs."""
        return next((where for where, calls in reversed(self._tokens.calls.items()) if not calls.pairs), None)
