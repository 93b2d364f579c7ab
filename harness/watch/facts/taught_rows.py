"""Taught rows: how many rows of a language model carry no label, or one on their prompt, over a training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.watch.bus import Recogniser
from harness.watch.events import End, Fact, TrainerMade
from harness.watch.facts.labels_given import Labelled

if TYPE_CHECKING:
    from harness.watch.monitor import Monitor

ASKED = ("completion_only_loss", "assistant_only_loss")
"""Settings of TRL by which the prompt is to be left out of the loss."""

MIN_PROMPT = 2
"""Tokens without a label at a row's beginning, from which on they are a prompt and not what begins a text."""


@dataclass(frozen=True, eq=False, kw_only=True)
class RowsWithoutLabel(Fact):
    """A training on labels of tokens is over. ``where`` is the forward pass of the first row that had none."""

    needs = "language model that is given labels"
    of_run = True
    rows: int
    without: int = 0
    """Rows without any label."""
    cut: int = 0
    """Of these, the ones without padding."""
    batches: int
    empty: int = 0
    """Batches without any label."""
    update: int | None = None
    """Of the first row without a label."""


@dataclass(frozen=True, eq=False, kw_only=True)
class PromptsTaught(Fact):
    """A training on labels of tokens is over. ``where`` is its first forward pass."""

    needs = "language model whose prompts are left out of the loss"
    of_run = True
    rows: int
    """With a label."""
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

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
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
