from __future__ import annotations

from harness.watch.check import Check
from harness.watch.events import Forward, InnerForward
from harness.watch.facts.tokens import Tokens
from harness.watch.monitor import Monitor

IGNORED = -100
"""The label that torch's cross-entropy leaves out, unless told otherwise."""

MOST_MASKED = 0.3
"""Largest share of masked tokens in a masked language model; where more are, diffusion over tokens may be meant, which
says all of them. By reasoning: BERT masks 0.15."""


class WrongMaskedLabels(Check):
    """The labels of a masked language model name the mask itself, or the words that are not masked.

    ## Why is this a bug?
    A masked language model learns to predict the words behind the masks. Labels that are copied after the masking teach
    it to predict the mask, and labels at all places teach it to copy: the loss falls fast, and nothing is learned.

    ## What to do
    Copy the ids before they are masked, and set the labels of all other places to -100.

    ## When it is right
    Masks over more than 30% of the tokens are not reported: diffusion over tokens predicts all of them.

    ## References
    - https://huggingface.co/docs/transformers/main_classes/data_collator
    """

    needs = "masked tokens with labels"
    formerly = ("inputs::wrong-labels", "inputs::labels")
    explains = ("loss::not-finite", "loss::constant", "gradients::cut-off")

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.tokens = monitor.fact(Tokens)

    def on_forward(self, event: Forward) -> None:
        self._look(event)

    def on_inner_forward(self, event: InnerForward) -> None:
        self._look(event)

    def _look(self, event: Forward) -> None:
        ids, labels, mask = self.tokens.ids, event.tensors.get("labels"), self.tokens.special("mask_token_id")
        if ids is None or labels is None or labels.shape != ids.shape or mask is None or not (ids == mask).any():
            return
        self.looked = True
        counted = labels != IGNORED
        if (ids == mask).float().mean() > MOST_MASKED:
            return
        hidden = counted & (ids == mask)
        observed = None
        if hidden.any() and bool((labels[hidden] == mask).all()):
            observed = "the labels at the masked places are the mask itself"
        elif int(counted.sum()) > 0.5 * labels.numel() and bool((labels == ids)[counted & (ids != mask)].all()):
            observed = f"{int(counted.sum())} of {labels.numel()} tokens are labelled; most of them are not masked"
        if observed is not None:
            self.found(
                expected="the word behind each mask, and -100 elsewhere",
                observed=observed,
                where=event.where,
                update=self.monitor.update,
            )
