from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch

from harness.watch.check import Check
from harness.watch.events import BackwardBegins, End, Forward
from harness.watch.facts.next_tokens import NextTokens, Taught
from harness.watch.facts.tokens import Tokens
from harness.watch.monitor import Monitor

MIN_TEXTS = 8
"""Texts of which the model must have been taught the token before the end. By reasoning, fewer may be chance."""


@dataclass
class _Ends:
    """What became of the ends of texts in the losses of one line."""

    where: str | None
    update: int
    without: int = 0
    """Texts whose end is no target, though the token before it is."""


class EndNotTaught(Check):
    """The end-of-text token (EOS) is left out of the loss, so that the model never learns to stop.

    ## Why is this a bug?
    If `pad_token` is `eos_token` and labels are set to -100 wherever the padding's id occurs
    (`labels[labels == tokenizer.pad_token_id] = -100`, as in DataCollatorForLanguageModeling), the one end-of-text
    token that closes each text is ignored together with the padding after it. The loss looks fine, and the trained
    model keeps talking until it is cut off.

    ## What to do
    Ignore the padding by the attention mask, labels.masked_fill(attention_mask == 0, -100), or give the tokenizer a
    padding token of its own: tokenizer.pad_token = "<pad>", with the embeddings resized.

    ## When it is right
    A model that should not learn where texts end: one that continues a text for as long as it is asked to. The model's
    configuration or the tokenizer says which token ends a text, and the attention mask says which of these tokens
    belong to it. Texts that do not end in this token are not looked at. Neither are texts in which no other token, or
    only one, is taught.

    ## References
    - https://huggingface.co/docs/transformers/main_classes/data_collator#transformers.DataCollatorForLanguageModeling
    """

    severity = "warning"
    needs = "language model that is taught texts with an end"

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.next_tokens = monitor.fact(NextTokens)
        self.tokens = monitor.fact(Tokens)
        self.ends: dict[int, _Ends] = {}
        """By the token that ends texts."""
        self.taught = False
        """Whether one of these tokens was the target of any place."""

    def on_backward_begins(self, event: BackwardBegins) -> None:
        for taught in self.next_tokens.taught:
            mask = taught.forward.tensors.get("attention_mask")
            if taught.ahead and taught.time and mask is not None and mask.shape == taught.tokens.shape:
                for end in self._said_to_end(taught.forward):
                    self._look_at(end, taught, mask.to(taught.tokens.device) != 0)

    def _said_to_end(self, forward: Forward) -> Iterator[int]:
        configs = (getattr(forward.model, name, None) for name in ("config", "generation_config"))
        said = [*(getattr(each, "eos_token_id", None) for each in configs), self.tokens.special("eos_token_id")]
        ids = [each for ids in said for each in (ids if isinstance(ids, (list, tuple)) else [ids])]
        yield from {each for each in ids if isinstance(each, int)}

    def _look_at(self, end: int, taught: Taught, text: torch.Tensor) -> None:
        tokens, length = taught.tokens, taught.tokens.shape[1]
        is_target = taught.is_target
        last = length - 1 - text.int().flip(1).argmax(1)
        rows = torch.arange(len(tokens), device=tokens.device)
        ends = text.any(1) & (last > taught.ahead) & (tokens[rows, last] == end)
        closed = ends & is_target[rows, last - 1] & (is_target.sum(1) > 1)
        without = int((closed & ~is_target[rows, last]).sum())
        self.looked |= bool(closed.any())
        self.taught |= bool((is_target & (tokens == end)).any())
        if without:
            self.ends.setdefault(end, _Ends(taught.where, self.monitor.update)).without += without

    def on_end(self, event: End) -> None:
        for end, seen in self.ends.items():
            if seen.without >= MIN_TEXTS and not self.taught:
                padding = " and the tokenizer's padding" if self.tokens.special("pad_token_id") == end else ""
                self.found(
                    expected="the token that ends a text as the target of the place before it",
                    observed=f"token {end}, which ends {seen.without} texts{padding}, is the target of no place, "
                    "and the token before it is",
                    where=seen.where,
                    update=seen.update,
                )
