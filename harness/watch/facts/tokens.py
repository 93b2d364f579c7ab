"""Tokens: the ids that a model is given, the tokenizer's special ones, the segments between its separators, and the
runs of one token at the end of rows."""

from __future__ import annotations

import copy
import linecache
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any
from weakref import ref

import torch

from harness.watch.events import Encode, Fact, Forward, InnerForward, TokenizerMade
from harness.watch.locate import from_signal_handler
from harness.watch.recogniser import Recogniser

SAMPLED_ROWS = 64
"""Rows of one call of the tokenizer that are looked at: what is enough to see what it is given."""

CONVERTS = ".convert_tokens_to_ids("


@dataclass
class Calls:
    """What the tokenizer was given in one line of the script, over the rows that were looked at."""

    rows: int = 0
    pairs: int = 0
    twice: int = 0
    """Pairs of a text with itself."""


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


class TokensGiven(Fact):
    """A model, or a pretrained one inside it, was given token ids, and is looked at. ``where`` it was called."""

    needs = "tokenized texts"
    in_windows = "first"
    forward: Forward
    ids: torch.Tensor
    """(rows, tokens)."""
    segments: Segments | None = None
    """None where there are no separators."""
    separated_by_hand: bool = False
    """Whether the tokenizer was given texts and no pairs, or the script makes ids of tokens: then it is the script that
    put the separators there, and they may not divide two texts."""
    padding: int | None = None
    """The tokenizer's token of that name; None where there is none, or no tokenizer is known."""
    end: int | None = None
    mask: int | None = None


class Tokens(Recogniser):
    """The tokenizer, what it was given, and the token ids of each forward that is looked at."""

    makes = (TokensGiven,)

    def begin(self) -> None:
        self._tokenizer: ref[Any] | None = None
        """The latest."""
        self.separated_at: str | None = None
        """The place of the latest forward with separators in its rows."""
        self.calls: dict[str | None, Calls] = {}
        """The tokenizer's, by their place; none where its work is cached, or done by workers."""

    @cached_property
    def _converts(self) -> bool:
        """Whether a file of the script's makes ids of tokens."""
        files = self.monitor.locator.users_files()
        return any(CONVERTS in line for file in sorted(files) for line in linecache.getlines(file))

    def special(self, name: str) -> int | None:
        """One of the latest tokenizer's special tokens, by its attribute."""
        tokenizer = None if self._tokenizer is None else self._tokenizer()
        return getattr(tokenizer, name, None)

    def on_tokenizer_made(self, event: TokenizerMade) -> None:
        self._tokenizer = ref(event.tokenizer)

    def on_encode(self, event: Encode) -> None:
        calls = self.calls.setdefault(event.where, Calls())
        for first, second in islice(texts_given(event), SAMPLED_ROWS):
            calls.rows += 1
            calls.pairs += second is not None
            calls.twice += second is not None and first == second

    def on_forward(self, event: Forward | InnerForward) -> None:
        ids = event.tensors.get("input_ids") if event.at.sampled else None
        if ids is None or ids.dim() != 2 or ids.is_floating_point():
            return
        segments, separator = None, self.special("sep_token_id")
        labels = event.tensors.get("labels")
        of_tokens = labels is not None and labels.shape == ids.shape  # rows of a masked language model are no pairs
        if separator is not None and (ids == separator).any() and not of_tokens:
            segments = _segments(ids.tolist(), separator)
            self.separated_at = event.where
        calls = self.calls.values()
        encoded = any(each.rows for each in calls)
        by_hand = not any(each.pairs for each in calls) if encoded else segments is not None and self._converts
        self.tell(
            TokensGiven(
                forward=event,
                ids=ids,
                segments=segments,
                separated_by_hand=by_hand,
                padding=self.special("pad_token_id"),
                end=self.special("eos_token_id"),
                mask=self.special("mask_token_id"),
                where=event.where,
            )
        )


def copied(tokenizer: Any) -> Any:
    """A copy that may be asked: a fast tokenizer keeps the truncation and padding of its latest call, whoever made it.

    None where there is no copy.
    """
    try:
        return copy.deepcopy(tokenizer)
    except Exception as error:
        if from_signal_handler(error):
            raise
        return None


def texts_given(event: Encode) -> Iterator[tuple[Any, Any]]:
    """The two texts of each row that the tokenizer was given; None for a second that there is not."""
    texts, seconds = event.texts, event.pairs
    if isinstance(texts, str):
        yield texts, seconds
    elif isinstance(texts, (list, tuple)):
        for place, text in enumerate(texts):
            if isinstance(text, tuple) and len(text) == 2:
                yield text
            else:
                yield text, seconds[place] if isinstance(seconds, (list, tuple)) else None


def _segments(rows: list[list[int]], separator: int) -> Segments:
    pairs, without_second = [], 0
    for number, tokens in enumerate(rows):
        ends = [place for place, token in enumerate(tokens) if token == separator]
        if len(ends) >= 3 and ends[1] - ends[0] == 1:
            ends = ends[1:]  # RoBERTa puts two between the sentences
        if len(ends) >= 2 and ends[1] - ends[0] > 1:
            pairs.append((number, ends[0], ends[1]))
        elif len(ends) >= 2:
            without_second += 1
    twice = sum(_first(rows[row], first, separator) == rows[row][first + 1 : second] for row, first, second in pairs)
    return Segments(len(rows), pairs, without_second, twice)


def _first(tokens: list[int], end: int, separator: int) -> list[int]:
    """The first segment, without the token that begins the row and a second separator."""
    return tokens[1 : end - 1] if tokens[end - 1] == separator else tokens[1:end]


def trailing(ids: torch.Tensor, token: int) -> torch.Tensor:
    """(rows, tokens): where a row has nothing but this token from there on."""
    return (ids == token).flip(1).cumprod(1).flip(1).bool()
