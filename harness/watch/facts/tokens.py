"""Tokens: the ids that a model is given, the tokenizer's special ones, and the segments between its separators."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import ref

import torch

from harness.watch.check import Fact
from harness.watch.events import Forward, InnerForward, TokenizerMade

if TYPE_CHECKING:
    from harness.watch.monitor import Monitor


@dataclass(frozen=True)
class Segments:
    """What the separators of a batch's rows divide."""

    rows: int
    pairs: list[tuple[int, int, int]]
    """(row, place of its first separator, place of its second), where there are tokens in between."""
    without_second: int
    """Rows whose second segment is empty."""
    twice: int
    """Pairs whose two segments are the same."""


class Tokens(Fact):
    """The token ids of the forward at hand, where it is looked at."""

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self._tokenizer: ref[Any] | None = None
        """The latest."""
        self.ids: torch.Tensor | None = None
        """(rows, tokens); None where the model has none, or its tensors are not looked at."""
        self.segments: Segments | None = None
        """None where there are no separators."""
        self.separated_at: str | None = None
        """The place of the latest forward with separators in its rows."""

    def special(self, name: str) -> int | None:
        """One of the latest tokenizer's special tokens, by its attribute."""
        tokenizer = None if self._tokenizer is None else self._tokenizer()
        return getattr(tokenizer, name, None)

    def on_tokenizer_made(self, event: TokenizerMade) -> None:
        self._tokenizer = ref(event.tokenizer)

    def on_forward(self, event: Forward) -> None:
        self._look_at(event)

    def on_inner_forward(self, event: InnerForward) -> None:
        self._look_at(event)

    def _look_at(self, event: Forward) -> None:
        self.ids = self.segments = None
        ids = event.tensors.get("input_ids") if self.monitor.is_sampled() else None
        if ids is None or ids.dim() != 2 or ids.is_floating_point():
            return
        self.ids = ids
        separator = self.special("sep_token_id")
        labels = event.tensors.get("labels")
        of_tokens = labels is not None and labels.shape == ids.shape  # rows of a masked language model are no pairs
        if separator is not None and (ids == separator).any() and not of_tokens:
            self.segments = _segments(ids.tolist(), separator)
            self.separated_at = event.where


def _segments(rows: list[list[int]], separator: int) -> Segments:
    pairs, without_second = [], 0
    for number, tokens in enumerate(rows):
        ends = [place for place, token in enumerate(tokens) if token == separator]
        if len(ends) >= 2 and ends[1] - ends[0] > 1:
            pairs.append((number, ends[0], ends[1]))
        elif len(ends) >= 2:
            without_second += 1
    twice = sum(rows[row][1:first] == rows[row][first + 1 : second] for row, first, second in pairs)
    return Segments(len(rows), pairs, without_second, twice)
