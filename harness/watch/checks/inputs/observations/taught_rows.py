"""Taught rows: how many rows of a language model carry no label, one on their prompt, or none on their end."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch

from harness.watch.events import End, Fact, Forward, TrainerMade
from harness.watch.facts.labels_given import Labelled
from harness.watch.facts.next_tokens import TokenLoss, TokensTaught
from harness.watch.facts.tokens import Tokens
from harness.watch.recogniser import Recogniser

ASKED = ("completion_only_loss", "assistant_only_loss")
"""Settings of TRL by which the prompt is to be left out of the loss."""

MIN_PROMPT = 2
"""Tokens without a label at a row's beginning, from which on they are a prompt and not what begins a text."""


class RowsWithoutLabel(Fact):
    """A training on labels of tokens is over. ``where`` is the forward pass of the first row that had none."""

    needs = "language model that is given labels"
    of_run = True
    rows: int
    without: int = 0
    """Rows without any label."""
    cut: int = 0
    """Rows without any label that have no padding."""
    batches: int
    empty: int = 0
    """Batches without any label."""
    update: int | None = None
    """Update of the first row without a label."""


class PromptsTaught(Fact):
    """A training on labels of tokens is over. ``where`` is its first forward pass."""

    needs = "language model whose prompts are left out of the loss"
    of_run = True
    rows: int
    """Rows with a label."""
    whole: int = 0
    """Rows that are taught whole."""
    prompts: int = 0
    """Rows whose first tokens have no label."""
    mixed: int = 0
    """Rows that are taught whole in batches in which the prompt of others is left out."""
    asked: str | None = None
    """The setting of the Trainer by which prompts are to be left out."""


class TaughtRows(Recogniser):
    makes = (RowsWithoutLabel, PromptsTaught)

    def begin(self) -> None:
        self._rows = self._without = self._batches = self._empty = self._cut = 0
        self._where: str | None = None
        self._update: int | None = None
        self._asked: str | None = None
        self._taught = self._whole = self._prompts = self._mixed = 0
        self._called: str | None = None

    def on_trainer_made(self, event: TrainerMade) -> None:
        self._asked = next((name for name in ASKED if getattr(event.trainer.args, name, None) is True), None)

    def on_labelled(self, fact: Labelled) -> None:
        without = ~fact.counted.any(1)
        self._rows += len(without)
        self._batches += 1
        self._without += int(without.sum())
        self._empty += bool(without.all())
        self._cut += int((without & fact.real.all(1)).sum())
        if without.any() and self._where is None:
            self._where, self._update = fact.where, fact.at.update
        if not fact.decoder:
            self._see_prompts(fact)

    def _see_prompts(self, fact: Labelled) -> None:
        untaught = fact.real & ~fact.counted
        first_taught = (fact.counted.long().cumsum(1) == 0) & untaught
        prompts = first_taught.sum(1) > MIN_PROMPT  # the first token is the target of no place
        taught = fact.counted.any(1)
        whole, prompts = taught & (untaught.sum(1) <= 1), taught & prompts
        self._taught += int(taught.sum())
        self._whole += int(whole.sum())
        self._prompts += int(prompts.sum())
        if bool(whole.any()) and bool(prompts.any()):  # another phase of a script may have another loss
            self._mixed += int(whole.sum())
        self._called = self._called or fact.where

    def on_end(self, event: End) -> None:
        if self._batches:
            self.tell(
                RowsWithoutLabel(
                    rows=self._rows,
                    without=self._without,
                    cut=self._cut,
                    batches=self._batches,
                    empty=self._empty,
                    update=self._update,
                    where=self._where,
                )
            )
            self.tell(
                PromptsTaught(
                    rows=self._taught,
                    whole=self._whole,
                    prompts=self._prompts,
                    mixed=self._mixed,
                    asked=self._asked,
                    where=self._called,
                )
            )


class EndOverTraining(Fact):
    """A training is over in which a token ended texts whose last word was taught. ``where`` an end first was not."""

    needs = "language model that is taught texts with an end"
    of_run = True
    end: int
    """The token."""
    without: int = 0
    """Texts whose end is no target, though the token before it is."""
    taught: bool = False
    """Whether a token that ends texts was the target of any place."""
    is_padding: bool = False
    """Whether it is the tokenizer's padding, too."""
    update: int | None = None
    """Update of the first such text."""


@dataclass
class _Ends:
    """What became of the ends of texts in the losses of one line."""

    without: int = 0
    where: str | None = None
    update: int | None = None


class EndsOfTexts(Recogniser):
    makes = (EndOverTraining,)

    def begin(self) -> None:
        self._tokens = self.fact(Tokens)
        self._ends: dict[int, _Ends] = {}
        """Ends by the token that ends texts."""
        self._taught = False
        """Whether one of these tokens was the target of any place."""

    def on_taught(self, fact: TokensTaught) -> None:
        for taught in fact.losses:
            mask = taught.forward.tensors.get("attention_mask")
            if taught.ahead and taught.time and mask is not None and mask.shape == taught.tokens.shape:
                for end in self._said_to_end(taught.forward):
                    self._look_at(end, taught, mask.to(taught.tokens.device) != 0, fact.at.update)

    def _said_to_end(self, forward: Forward) -> Iterator[int]:
        configs = (getattr(forward.model, name, None) for name in ("config", "generation_config"))
        given_ids = [*(getattr(each, "eos_token_id", None) for each in configs), self._tokens.special("eos_token_id")]
        ids = [each for ids in given_ids for each in (ids if isinstance(ids, (list, tuple)) else [ids])]
        yield from {each for each in ids if isinstance(each, int)}

    def _look_at(self, end: int, taught: TokenLoss, text: torch.Tensor, update: int) -> None:
        tokens, length = taught.tokens, taught.tokens.shape[1]
        is_target = taught.is_target
        last = length - 1 - text.int().flip(1).argmax(1)
        rows = torch.arange(len(tokens), device=tokens.device)
        ends = text.any(1) & (last > taught.ahead) & (tokens[rows, last] == end)
        closed = ends & is_target[rows, last - 1] & (is_target.sum(1) > 1)
        without = int((closed & ~is_target[rows, last]).sum())
        self._taught |= bool((is_target & (tokens == end)).any())
        if bool(closed.any()):
            seen = self._ends.setdefault(end, _Ends())
            if without and not seen.without:
                seen.where, seen.update = taught.where, update
            seen.without += without

    def on_end(self, event: End) -> None:
        padding = self._tokens.special("pad_token_id")
        for end, seen in self._ends.items():
            self.tell(
                EndOverTraining(
                    end=end,
                    without=seen.without,
                    taught=self._taught,
                    is_padding=padding == end,
                    update=seen.update,
                    where=seen.where,
                )
            )
