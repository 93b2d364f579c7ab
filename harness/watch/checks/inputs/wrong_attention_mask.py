from __future__ import annotations

from weakref import WeakKeyDictionary

import torch
from torch import nn

from harness.watch.check import Check
from harness.watch.events import Forward, InnerForward, positional
from harness.watch.facts.tokens import Tokens, trailing
from harness.watch.monitor import Monitor

MASKED = 0.05
"""Largest share of the text's tokens that may be masked: methods that drop tokens on purpose drop few. Neither half nor
double of it changes a verdict of the corpus."""

MIN_PADDED = 0.25
"""Smallest share of rows that end in several of the tokens that are padding by the model's configuration alone: words
that are drawn at random seldom do. Half or double of it changes verdicts (docs/detection.md)."""

DECODERS = ("Causal", "LMHead", "Decoder")
"""Words in the class names of models that need no mask for padding at the end: a token sees only those before it."""


class WrongAttentionMask(Check):
    """The attention mask shows padding to the model, or hides tokens of the text from it.

    ## Why is this a bug?
    Without a mask every token attends to the padding as if it were text. The model's output for a row then depends on
    how long the other rows of its batch are, in training and again, with other batches, in use.

    ## What to do
    Pass on the attention_mask that the tokenizer and the collator made.

    ## When it is right
    Models that take no mask, decoders without one, batches without padding, and a padding token that ends the text
    because it is the same as the end token are not reported.

    ## References
    - https://github.com/huggingface/transformers/issues/278
    """

    needs = "tokenized texts"
    in_windows = "first"
    formerly = ("inputs::padding-is-masked",)
    explains = ("model::output-depends-on-padding",)

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.tokens = monitor.fact(Tokens)
        self.accepts: WeakKeyDictionary[nn.Module, bool] = WeakKeyDictionary()
        """Whether each model takes a mask."""

    def on_forward(self, event: Forward) -> None:
        self._look_at(event)

    def on_inner_forward(self, event: InnerForward) -> None:
        self._look_at(event)

    def _look_at(self, event: Forward) -> None:
        pad = self.tokens.special("pad_token_id")
        may_end = pad is None or pad == self.tokens.special("eos_token_id")
        if pad is None and self.tokens.ids is not None:
            pad = getattr(getattr(event.model, "config", None), "pad_token_id", None)
            if pad is None or (_padding(self.tokens.ids, pad).sum(1) > 1).float().mean() < MIN_PADDED:
                return  # ids that no tokenizer made may be any word's
        if self.tokens.ids is None or pad is None:
            return
        self.looked = True
        observed = self._wrong(event, self.tokens.ids, pad, may_end)
        if observed is not None:
            self.found(
                expected="an attention mask that is 1 for tokens and 0 for padding",
                observed=observed,
                where=event.where,
                update=self.monitor.update,
            )

    def _wrong(self, event: Forward, ids: torch.Tensor, pad: int, may_end: bool) -> str | None:
        padding, mask = _padding(ids, pad), event.tensors.get("attention_mask")
        if mask is None:
            decoder = any(word in type(event.model).__name__ for word in DECODERS)
            missing = padding.any() and self._accepts_mask(event.model) and not decoder
            return "there is padding, and the model gets no attention mask" if missing else None
        if mask.shape != ids.shape:
            return None
        shown = padding & (mask != 0)
        if may_end:
            shown &= ~_beside_text(padding)
        hidden, text = int((~padding & (mask == 0)).sum()), int((~padding).sum())
        if shown.any():
            return f"{int(shown.sum())} tokens of padding are attended to"
        return f"{hidden} of {text} tokens of the text are masked" if hidden > MASKED * text else None

    def _accepts_mask(self, model: nn.Module) -> bool:
        if model not in self.accepts:
            self.accepts[model] = "attention_mask" in positional(model)
        return self.accepts[model]


def _padding(ids: torch.Tensor, pad: int) -> torch.Tensor:
    """(rows, tokens): where the padding is, at either end of a row."""
    is_pad = ids == pad
    leading = is_pad.cumprod(1).bool()
    return (trailing(ids, pad) | leading) & ~is_pad.all(1, keepdim=True)


def _beside_text(padding: torch.Tensor) -> torch.Tensor:
    """(rows, tokens): padding that may be the text's own end or beginning."""
    beside, text = torch.zeros_like(padding), ~padding
    beside[:, 1:] |= text[:, :-1]
    beside[:, :-1] |= text[:, 1:]
    return beside & padding
