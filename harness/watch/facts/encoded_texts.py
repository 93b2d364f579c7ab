"""Encoded texts: how much a tokenizer cut off of those that it was given, and how many of their words it knew."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from harness.watch.bus import Recogniser
from harness.watch.events import Batch, Encode, End, Fact
from harness.watch.facts.batches import tensors_in
from harness.watch.facts.tokens import Tokens

if TYPE_CHECKING:
    from harness.watch.monitor import Monitor

MOST_TOKENS = 20_000
"""Tokens that are looked at. By reasoning, what is enough. Neither half nor double of it changes a verdict of the
corpus."""

LOOKED_AT = 64
"""Rows of one call that are looked at."""


@dataclass(frozen=True, eq=False, kw_only=True)
class TextsEncoded(Fact):
    """A run is over in which a tokenizer was called. ``where`` it last cut a text."""

    needs = "tokenized texts"
    of_run = True
    texts: int
    cut: int = 0
    """Of the texts."""
    kept: int = 0
    """Tokens."""
    left_out: int = 0
    """Tokens."""


@dataclass(frozen=True, eq=False, kw_only=True)
class WordsEncoded(Fact):
    """A run is over in which a tokenizer with an unknown token was called. ``where`` it was last looked at."""

    needs = "tokenized texts"
    of_run = True
    tokens: int
    """That were looked at."""
    unknown: int
    """Of these, the ones that are the unknown one."""


class EncodedTexts(Recogniser):
    makes = (TextsEncoded, WordsEncoded)

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self._special = monitor.fact(Tokens).special
        self._texts = self._cut = self._kept = self._left_out = 0
        self._cut_at: str | None = None
        """The latest call that cut some."""
        self._by_workers = False
        """Whether workers of a loader tokenize."""
        self._tokens = self._unknown = 0
        self._where: str | None = None
        """The latest call whose words were looked at."""

    def on_encode(self, event: Encode) -> None:
        """What a fast tokenizer made: it keeps what it cut off."""
        for encoding in () if event.overflows else event.encodings or ():
            self._texts += 1
            self._kept += sum(encoding.attention_mask)
            over = sum(sum(each.special_tokens_mask) < len(each) and len(each) for each in encoding.overflowing)
            if over:
                self._cut += 1
                self._left_out += over
                self._cut_at = event.where
        unknown = self._special("unk_token_id")
        if unknown is None or self._tokens > MOST_TOKENS:
            return
        for encoding in islice(event.encodings or (), LOOKED_AT):
            text = [token for token, added in zip(encoding.ids, encoding.special_tokens_mask, strict=True) if not added]
            self._tokens += len(text)
            self._unknown += text.count(unknown)
            self._where = event.where

    def on_batch(self, event: Batch) -> None:
        if event.of.batches == 1 and event.of.loader.num_workers > 0:
            made = any(name.endswith("input_ids") for name, _ in tensors_in(event.data))
            columns = getattr(event.of.dataset, "column_names", None) or ()
            self._by_workers = self._by_workers or (made and "input_ids" not in columns)

    def on_end(self, event: End) -> None:
        if self._by_workers and not self._texts:
            self.monitor.note(
                "the workers of a DataLoader tokenize the texts: whether they are cut, or unknown words, is not seen "
                "(with num_workers=0 it is)"
            )
        cut, kept, left_out = self._cut, self._kept, self._left_out
        self.tell(TextsEncoded(texts=self._texts, cut=cut, kept=kept, left_out=left_out, where=self._cut_at))
        self.tell(WordsEncoded(tokens=self._tokens, unknown=self._unknown, where=self._where))
