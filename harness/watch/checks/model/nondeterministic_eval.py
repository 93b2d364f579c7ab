from __future__ import annotations

from dataclasses import dataclass
from weakref import ReferenceType, ref

import torch

from harness.watch.check import Check
from harness.watch.events import BackwardBegins, End, Forward
from harness.watch.facts.replays import SAME_ROWS, Replays
from harness.watch.monitor import Monitor

ON_PURPOSE = 3
"""Calls with the same rows, one after the other, that are a sample of predictions: by reasoning, once for the loss and
once for the accuracy are two."""


@dataclass(eq=False)
class _Seen:
    """A model in eval mode whose dropout is on."""

    apart: float
    where: str | None
    model: int
    given: ReferenceType[torch.Tensor] | None
    calls: int = 1


class NondeterministicEval(Check):
    """In eval mode a model gives other logits for the same rows when it is called again.

    ## Why is this a bug?
    Dropout that is called as a function does not know about eval mode, and stays on. Scores are too low, and
    comparisons of runs and of reloaded models mean nothing.

    ## What to do
    Give functional.dropout training=self.training.

    `scaled_dot_product_attention` knows no mode at all: give it `dropout_p=self.p if self.training else 0.0`. A dropout
    module that is made in `forward`, or kept in a list, is always in train mode: make it an attribute.

    ## When it is right
    Models that draw random numbers for something other than dropout in eval mode (a variational autoencoder, noise, a
    sampled choice) are not reported. Neither is dropout that is kept on by putting its modules into train mode (Monte
    Carlo dropout), or a model that is called with the same rows three or more times before anything else happens.

    ## References
    - https://github.com/pytorch/pytorch/issues/124464
    - https://github.com/huggingface/pytorch-image-models/pull/1978
    """

    needs = "evaluation that can be repeated"
    formerly = ("mode::evaluation-repeats",)

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.replays = monitor.fact(Replays)
        self.seen: _Seen | None = None
        """Until it is known whether the model is called for samples."""

    def on_forward(self, event: Forward) -> None:
        self.looked |= SAME_ROWS in self.replays.compared
        if self.seen is not None:
            self._called_again(self.seen, event)
        apart = self.replays.latest.again
        if apart is not None:
            given = next(iter(event.tensors.values()), None)
            known = None if given is None else ref(given)
            self.seen = _Seen(apart, event.where, self.monitor.number_of(event.model), known)

    def _called_again(self, seen: _Seen, event: Forward) -> None:
        before = None if seen.given is None else seen.given()
        alike = self.monitor.number_of(event.model) == seen.model and any(
            tensor is before for tensor in event.tensors.values()
        )
        if not alike:
            self._report()
            return
        seen.calls += 1
        if seen.calls == ON_PURPOSE:
            self.seen = None

    def on_backward_begins(self, event: BackwardBegins) -> None:
        self._report()

    def on_end(self, event: End) -> None:
        self._report()

    def _report(self) -> None:
        if self.seen is None:
            return
        self.found(
            expected="the same logits from the same rows",
            observed=f"the second time they are {self.seen.apart:.2g} apart, though the model is in eval mode: a "
            "dropout is on",
            where=self.seen.where,
        )
        self.seen = None
