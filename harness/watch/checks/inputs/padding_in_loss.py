from __future__ import annotations

import torch
from torch import nn

from harness.watch.check import Check
from harness.watch.events import BackwardBegins, Forward, LossCall
from harness.watch.facts.next_tokens import IGNORED, NextTokens, Taught
from harness.watch.facts.tokens import Tokens, trailing
from harness.watch.monitor import Monitor

MIN_IN_ROW = 2
"""Places of a row that are padding and count, from which on it is no end of the text that has the padding's id."""

MIN_SHARE = 0.05
"""Share of the places that count, above which the padding among them matters. Neither half nor double of it changes a
verdict of the corpus."""


class PaddingInLoss(Check):
    """Padding counts in the loss.

    ## Why is this a bug?
    The loss is a mean over positions. If padding is among them, the model is taught to predict padding after padding,
    which is easy: the longer the longest row of a batch is, the smaller the loss looks and the less the text counts.

    ## What to do
    Set the labels of the padding to -100: labels.masked_fill(attention_mask == 0, -100), or let a collator of
    transformers make them (DataCollatorForSeq2Seq, DataCollatorForTokenClassification). In a loop of your own:
    CrossEntropyLoss(ignore_index=PADDING).

    ## When it is right
    Ignore the warning if the model should learn to fill up a row. One padding token at the end of a text, if it is the
    same as the end token, is not reported, nor is a loss per position that the script masks itself. An
    `attention_mask`, a tokenizer, or the `padding_idx` of `torch.nn.Embedding` says what padding is.

    ## References
    - https://huggingface.co/docs/transformers/model_doc/t5#training
    """

    severity = "warning"
    needs = "labels of tokens"
    in_windows = "first"

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.next_tokens = monitor.fact(NextTokens)
        self.tokens = monitor.fact(Tokens)

    def on_backward_begins(self, event: BackwardBegins) -> None:
        if not self.monitor.is_sampled():
            return
        for taught in self.next_tokens.taught:
            padding = _padding(taught) if taught.ahead and taught.time else None
            if padding is not None:
                self._look_at(taught.is_target & padding, taught.counted, taught.call, taught.where)
        for forward in event.forwards:
            labels = forward.tensors.get("labels")
            calls = [call for call in event.losses if call.function == "cross_entropy" and _same(call, labels)]
            if labels is not None and len(calls) == 1:
                self._look_at(*self._labelled(forward, labels, calls[0]), calls[0], calls[0].where)

    def _labelled(self, forward: Forward, labels: torch.Tensor, call: LossCall) -> tuple[torch.Tensor, torch.Tensor]:
        """Which labels are padding's and count, and which count."""
        mask, pad = forward.tensors.get("attention_mask"), self.tokens.special("pad_token_id")
        counted = labels != call.options.get("ignore_index", IGNORED)
        if mask is not None and mask.shape == labels.shape:
            return counted & (mask == 0), counted
        if pad is None or mask is None:
            return torch.zeros_like(counted), counted
        return counted & trailing(labels, pad), counted

    def _look_at(self, padded: torch.Tensor, counted: torch.Tensor, call: LossCall | None, where: str | None) -> None:
        options = {} if call is None else call.options
        if options.get("reduction", "mean") == "none" or options.get("weight") is not None:
            return
        self.looked = True
        several = padded & (padded.sum(1, keepdim=True) >= MIN_IN_ROW)
        if int(several.sum()) > MIN_SHARE * int(counted.sum()):
            self.found(
                expected="-100, which the loss leaves out, as the label of padding",
                observed=f"{int(several.sum())} of the {int(counted.sum())} places that count are padding",
                where=where,
                update=self.monitor.update,
            )


def _padding(taught: Taught) -> torch.Tensor | None:
    """(rows, tokens): the padding, by the mask or by what the model's embedding calls so; None where neither says."""
    mask = taught.forward.tensors.get("attention_mask")
    if mask is not None and mask.shape == taught.tokens.shape:
        return mask == 0
    classes = None if taught.forward.logits is None else taught.forward.logits.shape[-1]
    embeddings = [each for each in taught.forward.model.modules() if isinstance(each, nn.Embedding)]
    named = {each.padding_idx for each in embeddings if each.num_embeddings == classes}  # others are no words
    return trailing(taught.tokens, padding) if len(named) == 1 and (padding := named.pop()) is not None else None


def _same(call: LossCall, labels: torch.Tensor | None) -> bool:
    """Whether the loss was given these labels, of the tokens of each row."""
    if labels is None or labels.dim() != 2 or labels.is_floating_point() or call.target.numel() != labels.numel():
        return False
    return torch.equal(call.target.flatten(), labels.flatten())
