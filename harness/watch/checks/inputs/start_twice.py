from __future__ import annotations

import torch

from harness.watch.check import Check
from harness.watch.events import BackwardBegins, End, Forward
from harness.watch.facts.labels_given import real_tokens
from harness.watch.facts.tokens import Tokens
from harness.watch.monitor import Monitor

MIN_ROWS = 8
"""Rows that must begin so. By reasoning: one or two may be texts that quote the token."""

MIN_SHARE = 0.5
"""Share of the rows that must begin so. What a template or a tokenizer does, it does to all of them. Neither half nor
double of it changes a verdict of the corpus."""


class StartTwice(Check):
    """Texts begin with two begin-of-text tokens.

    ## Why is this a bug?
    The chat template writes the begin-of-text token into the text, and the tokenizer puts another in front of it, as it
    does by default. In training the model gets used to two; whatever serves it later gives it one, and the first
    tokens of an answer are worse for it.

    ## What to do
    Tokenize what a template has written with `add_special_tokens=False`, or let `apply_chat_template(tokenize=True)` do
    both steps; for TRL give the messages themselves rather than a rendered text.

    ## When it is right
    When the model was pretrained on two such tokens. The tokenizer or the model's configuration says which token begins
    a text; rows that are padded with the same token are not looked at.

    ## References
    - https://huggingface.co/docs/transformers/chat_templating
    - https://github.com/huggingface/trl/issues/1400
    """

    status = "new"
    needs = "training on tokens with a begin-of-text token"
    in_windows = "first"

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.tokens = monitor.fact(Tokens)
        self.rows = self.twice = 0
        self.start: int | None = None
        self.where: str | None = None
        self.update: int | None = None

    def on_backward_begins(self, event: BackwardBegins) -> None:
        if not self.monitor.is_sampled():
            return
        for forward in event.forwards:
            ids, start = forward.tensors.get("input_ids"), self._start_of(forward)
            if start is not None and forward.gradients and ids is not None and ids.dim() == 2 and ids.shape[1] > 2:
                self._look_at(forward, ids, start)

    def _start_of(self, forward: Forward) -> int | None:
        """The token that begins a text; None where there is none, or it is the padding too."""
        config = getattr(forward.model, "config", None)
        start = self.tokens.special("bos_token_id")
        start = getattr(config, "bos_token_id", None) if start is None else start
        padding = (self.tokens.special("pad_token_id"), getattr(config, "pad_token_id", None))
        return start if isinstance(start, int) and start not in padding else None

    def _look_at(self, forward: Forward, ids: torch.Tensor, start: int) -> None:
        first = real_tokens(forward, ids).int().argmax(1).clamp(max=ids.shape[1] - 2)
        rows = torch.arange(len(ids), device=ids.device)
        begins = ids[rows, first] == start
        twice = begins & (ids[rows, first + 1] == start)
        self.looked |= bool(begins.any())
        self.rows += len(ids)
        self.twice += int(twice.sum())
        if twice.any() and self.start is None:
            self.start, self.where, self.update = start, forward.where, self.monitor.update

    def on_end(self, event: End) -> None:
        if self.twice >= MIN_ROWS and self.twice >= MIN_SHARE * self.rows:
            self.found(
                expected="one begin-of-text token (BOS) at the beginning of a text",
                observed=f"{self.twice} of {self.rows} rows begin with two BOS tokens (id {self.start})",
                where=self.where,
                update=self.update,
            )
