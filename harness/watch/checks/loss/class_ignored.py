from __future__ import annotations

import torch
from torch import nn

from harness.watch.check import Check
from harness.watch.events import Forward, LossCall

MIN_UPDATES = 3
"""Updates in which it must be so. Neither half nor double of it changes a verdict of the corpus."""

MIN_SHARE = 0.5
"""Smallest share of the targets within a row that must be ignored. The tag of all other words is more often, and parts
of words and marks that are left out are fewer. Half or double of it changes verdicts (docs/detection.md)."""


class ClassIgnored(Check):
    """The class that the loss ignores is one of those that the model is to tell apart, and no padding.

    ## Why is this a bug?
    `ignore_index` leaves every target with that number out of the loss. If the padding of the labels has the number of
    a class (0 as both the padding and the tag of most tokens, say), that class is never taught, and the model never
    predicts it.

    ## What to do
    Pad labels with -100, which is no class, and leave `ignore_index` as it is.

    ## When it is right
    Targets that are ignored only at the ends of rows are padding and not reported. Neither are ignored targets that are
    fewer than half of the rest, such as the second parts of words, or marks between sentences. Models whose classes are
    their own vocabulary are not reported either: a masked language model is right to ignore the tokens that it sees.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.CrossEntropyLoss.html
    """

    status = "new"
    needs = "loss over rows of labels of which some are ignored"
    in_windows = "first"
    updates = 0

    def on_loss(self, event: LossCall) -> None:
        index = event.options.get("ignore_index", -100)
        if event.function not in ("cross_entropy", "nll_loss") or not self.monitor.is_sampled():
            return
        classes = event.input.shape[1] if event.input.dim() > 1 else len(event.input)
        called = self.monitor.forwards[-1:]
        rows = _rows(event.target.detach(), called)
        self.looked |= rows is not None and bool((rows == index).any())
        if not 0 <= index < classes or rows is None or any(_has_vocabulary(each.model, classes) for each in called):
            return
        taught = rows != index
        seen_before, seen_after = taught.cumsum(1) > 0, taught.flip(1).cumsum(1).flip(1) > 0
        between = int((~taught & seen_before & seen_after).sum())
        ignored = int((~taught).sum())
        self.updates += between > 0 and between >= MIN_SHARE * (between + int(taught.sum()))
        if self.updates == MIN_UPDATES:
            self.found(
                expected=f"an ignored number that is none of the {classes} classes, or padding at the ends of rows",
                observed=f"ignore_index={index}: {ignored} of {rows.numel()} targets are left out of the loss, "
                f"{between} of them between others of their row",
                where=event.where,
                update=self.monitor.update,
            )


def _rows(target: torch.Tensor, forwards: list[Forward]) -> torch.Tensor | None:
    """(rows, tokens) of targets that may have been given flat; None where they are no such rows."""
    if target.dim() == 2:
        return target
    logits = forwards[0].logits if forwards else None
    if target.dim() == 1 and logits is not None and logits.dim() == 3 and logits.shape[:2].numel() == len(target):
        return target.reshape(logits.shape[:2])
    return None


def _has_vocabulary(model: nn.Module, classes: int) -> bool:
    return any(isinstance(each, nn.Embedding) and each.num_embeddings == classes for each in model.modules())
