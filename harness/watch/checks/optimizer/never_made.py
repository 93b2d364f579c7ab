from __future__ import annotations

from collections.abc import Hashable

from torch import nn

from harness.watch.check import Check
from harness.watch.events import Backward, End
from harness.watch.facts.gradient_ledger import rows_of
from harness.watch.facts.parameters import Parameters
from harness.watch.monitor import Monitor

FEWEST_BACKWARD_PASSES = 4
"""Backward passes without any update from which on that is no accident. Neither half nor double of it changes a verdict
of the corpus."""


class NeverMade(Check):
    """Gradients are computed again and again, and nothing changes the parameters: there is no optimizer.

    ## Why is this a bug?
    Gradients change nothing by themselves. An update that is written by hand as `p = p - lr * p.grad` only gives
    another tensor the name `p`, and the model keeps the parameters that it had.

    ## What to do
    Make an optimizer of `model.parameters()`, and call its `step()` after each backward pass.

    Write an update by hand into the parameter itself, under `no_grad()`: `p -= lr * p.grad`.

    ## When it is right
    This is reported only if the script goes through the same rows again, in train mode, and computes no gradients of an
    input: then the only explanation is an update that changes nothing. Scripts that only look at gradients a few times,
    and updates by hand that change something, are not reported.
    """

    needs = "backward pass without an optimizer"
    formerly = ("parameters::unchanged", "effect::parameters-change")
    explains = ("gradients::lost", "optimizer::missing-parameters")

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.parameters = monitor.fact(Parameters)
        self.backward_passes = 0
        self.first_rows: Hashable = None
        """What the first backward pass was of."""
        self.again: str | None = None
        """Where the same rows were gone through once more."""
        self.of_inputs = False
        """Whether gradients of inputs are computed, and not only those of parameters."""

    def on_backward(self, event: Backward) -> None:
        self.backward_passes += 1
        if self.monitor.optimizer_made_at or self.monitor.stepped or self.of_inputs:
            return
        self.of_inputs = any(t.requires_grad for f in event.forwards for t in f.tensors.values())
        reached = [forward.model for forward in event.forwards if forward.number in event.reached]
        rows = rows_of(event)
        known = self.first_rows == rows or (event.batch is not None and event.batch.of.number > 1)
        self.first_rows = self.first_rows or rows
        enough = self.backward_passes >= FEWEST_BACKWARD_PASSES
        if enough and known and any(_has_gradients(m) for m in reached if m.training):
            self.again = event.where

    def on_end(self, event: End) -> None:
        if self.monitor.stepped or self.monitor.optimizer_made_at:
            return
        self.looked = self.again is not None
        if self.again is not None and not self.of_inputs and not self.parameters.by_hand:
            self.found(
                expected="parameters that change between two backward passes of the same rows",
                observed=f"after {self.backward_passes} backward passes they are what they were, and no optimizer was "
                "made",
                where=self.again,
                update=1,
            )


def _has_gradients(model: nn.Module) -> bool:
    return any(p.grad is not None and bool(p.grad.any()) for p in model.parameters())
