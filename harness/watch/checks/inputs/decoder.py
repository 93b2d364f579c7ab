"""How the texts begin that an encoder-decoder model is taught, and how those begin that it then writes."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from harness.watch.check import NOTHING_TO_JUDGE, Check, Found, Held, NothingToJudge, Verdict
from harness.watch.events import End, Forward, InnerForward
from harness.watch.facts.labels_given import has_decoder
from harness.watch.host import on_host

MIN_BEGUN = 16
"""Rows that must have been trained on, all of which begin so. By reasoning: what a collator does, it does to all."""

MIN_FIRST_TOKENS = 4
"""Different tokens that rows begin with, from which on they are words of the text. By reasoning: a model of several
languages begins with one token for each, and scripts use two or three."""

MIN_WRITTEN = 8
"""Rows that the model was asked to go on with. By reasoning: one or two may be an example that is printed."""


class WrongDecoderStart(Check):
    """The decoder is not taught to begin as it begins when it writes.

    ## Why is this a bug?
    `generate()` gives the decoder `decoder_start_token_id`, and the model writes what follows. The models of
    transformers shift the labels and put that token in front by themselves. Labels that begin with it make two of it,
    so the text is learned one place further on than it is written. `decoder_input_ids` without it teach the model the
    second word from the first, and never the first: what it writes first is left to chance.

    ## What to do
    Pass `labels` alone, without the start token and without `decoder_input_ids`; the model makes these of the labels.

    ## When it is right
    Labels that begin with the start token are reported only if the model is then asked to go on from a single one, as
    Whisper is; a model that writes the second one itself, as one of two BERTs, has learned to. Rows without it are
    reported only if the model then writes from it. Rows that begin with one of a few tokens, such as those of
    languages, are not.

    ## References
    - https://huggingface.co/docs/transformers/model_doc/t5#training
    - https://github.com/huggingface/transformers/issues/29973
    """

    severity = "error"
    new_since = "0.4.0"
    needs = "encoder-decoder model that is trained on texts"

    def begin(self) -> None:
        self._rows = self._begun = self._twice = self._written = self._written_on = 0
        self._first = set[int]()
        self._where: str | None = None

    def on_forward(self, event: Forward | InnerForward) -> None:
        start = _start_of(event.model) if event.at.sampled else None
        if start is None:
            return
        given, labels = event.tensors.get("decoder_input_ids"), event.tensors.get("labels")
        if event.logits is None or event.logits.dim() != 3:
            return  # it says no text
        if any(each.requires_grad for each in event.outputs):
            self._add_trained(event, start, given, labels)
        elif given is not None and given.dim() == 2:
            begins = on_host(given[:, :2])
            if begins.shape[1] == 1:  # generate() also puts it in front of a start of the script's own
                self._written += int((begins[:, 0] == start).sum())
            self._written_on += int(((begins[:, 0] == start) & (begins[:, -1] != start)).sum())

    def _add_trained(self, event: Forward, start: int, given: torch.Tensor | None, labels: torch.Tensor | None) -> None:
        if given is not None and given.dim() == 2 and given.shape[1] > 1:
            begins = on_host(given[:, :2])
        elif given is None and labels is not None and labels.dim() == 2 and not labels.is_floating_point():
            first = on_host(labels[:, :1])
            begins = torch.cat((torch.full_like(first, start), first), 1)
        else:
            return
        self._where = self._where or event.where
        self._rows += len(begins)
        self._begun += int((begins[:, 0] == start).sum())
        self._twice += int((begins == start).all(1).sum())
        if len(self._first) < MIN_FIRST_TOKENS:
            self._first |= set(begins[:, 0].tolist())

    def on_end(self, event: End) -> None:
        if self._rows:
            counts = {"written": self._written, "written_on": self._written_on}
            self.says(self.judge(self._rows, self._begun, self._twice, len(self._first), **counts), self._where)

    @staticmethod
    def judge(rows: int, begun: int, twice: int, first: int, written: int, written_on: int) -> Verdict:
        """Rows that were trained on, those that begin with the start token, those that do with two of it, the different
        tokens that they begin with; rows that the model was asked to begin with the start token, and to go on with
        behind a single one."""
        if rows < MIN_BEGUN:
            return NOTHING_TO_JUDGE
        if twice == rows and written_on < MIN_WRITTEN:
            return NothingToJudge("all texts begin with two start tokens, and none was written from a single one")
        if twice == rows:
            observed = f"all {rows} rows begin with two start tokens; it then writes from a single one"
        elif not begun and first >= MIN_FIRST_TOKENS and written < MIN_WRITTEN:
            return NothingToJudge("no text begins with the start token, and none was written from it")
        elif not begun and first >= MIN_FIRST_TOKENS:
            observed = f"none of {rows} rows begins with the start token, so the first word is never taught"
        else:
            return Held(f"{begun} of {rows} rows begin with the start token, {twice} with two")
        return Found(expected="decoder inputs that begin with decoder_start_token_id, once", observed=observed)


def _start_of(model: nn.Module) -> int | None:
    """The token that an encoder-decoder model of transformers begins to write with, also within others."""
    for module in model.modules() if has_decoder(model) else ():
        config: Any = getattr(module, "config", None)
        if getattr(config, "is_encoder_decoder", False) is True:
            start = getattr(config, "decoder_start_token_id", None)
            return start if isinstance(start, int) else None
    return None
