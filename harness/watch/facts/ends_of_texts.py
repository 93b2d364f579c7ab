"""Ends of texts: whether the tokens that end them are the target of any place."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from harness.watch.bus import Recogniser
from harness.watch.events import End, Fact, Forward
from harness.watch.facts.next_tokens import Taught, TokensTaught
from harness.watch.facts.tokens import Tokens

if TYPE_CHECKING:
    from harness.watch.monitor import Monitor


@dataclass(frozen=True, eq=False, kw_only=True)
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
    """Of the first such text."""


@dataclass
class _Ends:
    """What became of the ends of texts in the losses of one line."""

    without: int = 0
    where: str | None = None
    update: int | None = None


class EndsOfTexts(Recogniser):
    makes = (EndOverTraining,)

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self._tokens = monitor.fact(Tokens)
        self._ends: dict[int, _Ends] = {}
        """By the token that ends texts."""
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
        said = [*(getattr(each, "eos_token_id", None) for each in configs), self._tokens.special("eos_token_id")]
        ids = [each for ids in said for each in (ids if isinstance(ids, (list, tuple)) else [ids])]
        yield from {each for each in ids if isinstance(each, int)}

    def _look_at(self, end: int, taught: Taught, text: torch.Tensor, update: int) -> None:
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
