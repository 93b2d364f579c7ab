from __future__ import annotations

from harness.watch.check import Check
from harness.watch.events import Batch, Encode, End
from harness.watch.facts.batches import tensors_in
from harness.watch.monitor import Monitor

MIN_TEXTS = 16
"""Texts that are tokenized before something is said of all of them. Neither half nor double of it changes a verdict of
the corpus."""


class Truncated(Check):
    """Most texts are cut, and more of their tokens are left out than kept.

    ## Why is this a bug?
    Truncation is silent. With a `max_length` that was meant for other texts, the model is trained and evaluated on the
    beginnings of sentences, and both numbers agree.

    ## What to do
    Raise max_length; right for long documents, of which only the beginning is wanted.

    ## When it is right
    Ignore the warning if the beginning of a long document says enough. Texts that are split into parts with
    `return_overflowing_tokens` lose nothing, and are not reported.
    """

    needs = "tokenized texts"
    formerly = ("inputs::not-cut-off",)
    severity = "warning"

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.texts = self.cut_texts = 0
        self.kept = self.left_out = 0
        """Tokens."""
        self.by_workers = False
        """Whether workers of a loader tokenize."""
        self.where: str | None = None
        """The latest call that cut some."""

    def on_encode(self, event: Encode) -> None:
        """What a fast tokenizer made: it keeps what it cut off."""
        for encoding in () if event.overflows else event.encodings or ():
            self.texts += 1
            self.kept += sum(encoding.attention_mask)
            over = sum(sum(each.special_tokens_mask) < len(each) and len(each) for each in encoding.overflowing)
            if over:
                self.cut_texts += 1
                self.left_out += over
                self.where = event.where

    def on_batch(self, event: Batch) -> None:
        if event.of.batches == 1 and event.of.loader.num_workers > 0:
            made = any(name.endswith("input_ids") for name, _ in tensors_in(event.data))
            columns = getattr(event.of.dataset, "column_names", None) or ()
            self.by_workers = self.by_workers or (made and "input_ids" not in columns)

    def on_end(self, event: End) -> None:
        self.looked = self.texts >= MIN_TEXTS
        if self.by_workers and not self.texts:
            self.monitor.note(
                "the workers of a DataLoader tokenize the texts: whether they are cut, or unknown words, is not seen "
                "(with num_workers=0 it is)"
            )
        if self.texts >= MIN_TEXTS and self.cut_texts > self.texts / 2 and self.left_out > self.kept:
            self.found(
                expected="most of each text",
                observed=f"{self.cut_texts} of {self.texts} texts are cut; more tokens are left out than kept",
                where=self.where,
            )
