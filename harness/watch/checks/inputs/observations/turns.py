"""Turns: where those of a chat template begin and end in the rows of a training, and how the rows begin."""

from __future__ import annotations

from itertools import pairwise

import torch

from harness.watch.events import BackwardBegins, End, Fact, Forward
from harness.watch.facts.chat_templates import ChatTemplates
from harness.watch.facts.labels_given import Labelled, real_tokens
from harness.watch.facts.tokens import Tokens
from harness.watch.host import on_host
from harness.watch.recogniser import Recogniser

MIN_ROWS = 16
"""Rows none of which has the token. By reasoning: fewer may be the inside of one long text."""


class TurnsTaught(Fact):
    """A training is over on rows with turns of the tokenizer's chat template. ``where`` is the first forward pass."""

    needs = "language model whose tokenizer has a chat template"
    of_run = True
    rows: int
    """Rows with turns."""
    nested: int = 0
    """Rows in which one turn begins right where another begins."""
    texts: int = 0
    """Rows with turns before their padding and the token that ends a text."""
    open: int = 0
    """Such rows that end right where a turn of the assistant begins."""


class StartsTaught(Fact):
    """A training is over on texts that the tokenizer begins with a token. ``where`` is the first forward pass."""

    needs = "language model whose tokenizer begins texts with a token"
    of_run = True
    start: str
    rows: int
    """Rows that were looked at."""
    begun: bool
    """Whether any of them has it."""


class StartsDoubled(Fact):
    """A training is over in which rows began with a begin-of-text token. ``where`` one first began with two."""

    needs = "training on tokens with a begin-of-text token"
    in_windows = "first"
    of_run = True
    rows: int
    twice: int = 0
    """Rows that began with two."""
    start: int | None = None
    update: int | None = None


class Turns(Recogniser):
    makes = (TurnsTaught,)

    def begin(self) -> None:
        self._template = self.fact(ChatTemplates)
        self._rows = self._nested = self._texts = self._open = 0
        self._where: str | None = None

    def on_labelled(self, fact: Labelled) -> None:
        if fact.decoder or not self._template.headers:
            return
        for row, real in zip(fact.tokens, fact.real, strict=True):
            turns = self._template.turns(row.tolist())
            self._rows += bool(turns)
            self._nested += any(place + length == behind for (place, _, length), (behind, _, _) in pairwise(turns))
            tokens = row[real].tolist()
            while tokens[-1:] == [getattr(self._template.tokenizer, "eos_token_id", None)]:
                tokens.pop()  # which the tokenizer or a trainer has added
            for place, role, length in self._template.turns(tokens)[-1:]:
                self._texts += 1
                self._open += role == "assistant" and place + length == len(tokens)
            if self._rows or self._texts:
                self._where = self._where or fact.where

    def on_end(self, event: End) -> None:
        if self._rows or self._texts:
            rows, nested, texts = self._rows, self._nested, self._texts
            self.tell(TurnsTaught(rows=rows, nested=nested, texts=texts, open=self._open, where=self._where))


class TurnStarts(Recogniser):
    makes = (StartsTaught,)

    def begin(self) -> None:
        self._template = self.fact(ChatTemplates)
        self._rows = 0
        self._begun = False
        self._where: str | None = None

    def on_labelled(self, fact: Labelled) -> None:
        start = getattr(self._template.tokenizer, "bos_token_id", None)
        if start is not None and not self._begun and not fact.decoder:
            self._rows += len(fact.tokens)
            self._begun = bool((fact.tokens == start).any())
            self._where = self._where or fact.where

    def on_end(self, event: End) -> None:
        tokenizer = self._template.asked
        if tokenizer is None or not (self._begun or self._rows >= MIN_ROWS):
            return
        if tokenizer("a")["input_ids"][:1] == [tokenizer.bos_token_id]:
            start = tokenizer.bos_token
            self.tell(StartsTaught(start=start, rows=self._rows, begun=self._begun, where=self._where))


class DoubledStarts(Recogniser):
    makes = (StartsDoubled,)

    def begin(self) -> None:
        self._tokens = self.fact(Tokens)
        self._rows = self._twice = 0
        self._begins = False
        self._start: int | None = None
        self._where: str | None = None
        self._update: int | None = None

    def on_backward_begins(self, event: BackwardBegins) -> None:
        for forward in event.forwards if event.at.sampled else ():
            ids, start = forward.tensors.get("input_ids"), self._start_of(forward)
            if start is not None and forward.gradients and ids is not None and ids.dim() == 2 and ids.shape[1] > 2:
                self._look_at(forward, on_host(ids), start, event.at.update)

    def _start_of(self, forward: Forward) -> int | None:
        """The token that begins a text; None where there is none, or it is the padding too."""
        config = getattr(forward.model, "config", None)
        start = self._tokens.special("bos_token_id")
        start = getattr(config, "bos_token_id", None) if start is None else start
        padding = (self._tokens.special("pad_token_id"), getattr(config, "pad_token_id", None))
        return start if isinstance(start, int) and start not in padding else None

    def _look_at(self, forward: Forward, ids: torch.Tensor, start: int, update: int) -> None:
        first = real_tokens(forward, ids).int().argmax(1).clamp(max=ids.shape[1] - 2)
        rows = torch.arange(len(ids), device=ids.device)
        begins = ids[rows, first] == start
        twice = begins & (ids[rows, first + 1] == start)
        self._begins |= bool(begins.any())
        self._rows += len(ids)
        self._twice += int(twice.sum())
        if twice.any() and self._start is None:
            self._start, self._where, self._update = start, forward.where, update

    def on_end(self, event: End) -> None:
        if self._begins:
            rows, twice, start, update = self._rows, self._twice, self._start, self._update
            self.tell(StartsDoubled(rows=rows, twice=twice, start=start, update=update, where=self._where))
