from __future__ import annotations

import torch

from harness.watch.check import Check
from harness.watch.events import LossCall

FUNCTIONS = ("cross_entropy", "nll_loss", "kl_div")
"""Losses that sum over many classes, whose small terms half precision loses."""

MIN_CLASSES = 256
"""Classes from which on it matters. Bfloat16 tells 256 numbers between a power of two and the next. Half or double of
it changes verdicts (docs/detection.md)."""


class HalfPrecision(Check):
    """The loss of a large vocabulary is computed in half precision.

    ## Why is this a bug?
    bfloat16 keeps eight bits. Over tens of thousands of classes the sum in the softmax loses its small terms, and the
    loss moves in steps of several percent: gradients of rare tokens are rounded away, and the loss curve looks like a
    staircase.

    ## What to do
    Give the loss the logits as float32: `cross_entropy(logits.float(), labels)`, as the models of transformers do; or
    compute model and loss within `torch.autocast`, which does so by itself.

    ## When it is right
    A kernel of your own that sums in float32. A loss within autocast, or over a few classes, is not reported.

    ## References
    - https://docs.pytorch.org/docs/stable/amp.html#cuda-ops-that-autocast-to-float32
    """

    severity = "warning"
    status = "new"
    needs = "loss over a large vocabulary"
    in_windows = "first"

    def on_loss(self, event: LossCall) -> None:
        if event.function not in FUNCTIONS or event.input.dim() < 2 or event.input.shape[1] < MIN_CLASSES:
            return
        self.looked = True
        device = event.input.device.type
        if event.input.dtype in (torch.float16, torch.bfloat16) and not torch.is_autocast_enabled(device):
            dtype = str(event.input.dtype).removeprefix("torch.")
            self.found(
                expected="float32 logits for a loss over many classes",
                observed=f"{event.function} over {event.input.shape[1]} classes is computed in {dtype}, "
                "not in autocast",
                where=event.where,
                update=self.monitor.update,
            )
