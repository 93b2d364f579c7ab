from __future__ import annotations

from itertools import islice

from harness.watch.check import Check
from harness.watch.events import Encode, End
from harness.watch.facts.tokens import Tokens
from harness.watch.monitor import Monitor

MIN_TOKENS = 64
"""Tokens that are looked at before something is said of all of them. Neither half nor double of it changes a verdict of
the corpus."""

MOST_TOKENS = 20_000
"""Tokens that are looked at. By reasoning, what is enough. Neither half nor double of it changes a verdict of the
corpus."""

LOOKED_AT = 64
"""Rows of one call that are looked at."""

MAX_UNKNOWN = 0.8
"""Largest share of a text's tokens that may be unknown. Far above what names and numbers in a foreign vocabulary come
to. Neither half nor double of it changes a verdict of the corpus."""


class UnknownWords(Check):
    """Nearly every word is unknown to the tokenizer.

    ## Why is this a bug?
    All words outside the vocabulary become one and the same token: the model sees how long a text is, and nothing else.
    Nobody notices a vocabulary that was not read (its argument has another name, its file belongs to something else),
    because a tokenizer without words makes tokens too.

    ## What to do
    Print tokenizer.vocab_size and tokenizer.tokenize(text), and look at how the tokenizer was made.

    ## When it is right
    A few unknown words are not reported, nor are tokenizers other than the fast ones.

    ## References
    - https://huggingface.co/docs/transformers/main_classes/tokenizer
    """

    needs = "tokenized texts"
    explains = ("rows::repeated-or-skipped", "rows::labels-of-other-rows", "rows::evaluated-on-training-rows")

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.special = monitor.fact(Tokens).special
        self.tokens = self.unknown = 0
        self.where: str | None = None
        """The latest call."""

    def on_encode(self, event: Encode) -> None:
        unknown = self.special("unk_token_id")
        if unknown is None or self.tokens > MOST_TOKENS:
            return
        for encoding in islice(event.encodings or (), LOOKED_AT):
            text = [token for token, added in zip(encoding.ids, encoding.special_tokens_mask, strict=True) if not added]
            self.tokens += len(text)
            self.unknown += text.count(unknown)
            self.where = event.where

    def on_end(self, event: End) -> None:
        self.looked = self.tokens >= MIN_TOKENS
        if self.looked and self.unknown > MAX_UNKNOWN * self.tokens:
            self.found(
                expected="words that the tokenizer knows",
                observed=f"{self.unknown} of {self.tokens} tokens of the texts that were looked at are the unknown one",
                where=self.where,
                update=1,
            )
