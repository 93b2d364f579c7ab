from __future__ import annotations

from typing import Any

import torch

from harness.watch.check import Check
from harness.watch.events import BackwardBegins, LossCall
from harness.watch.facts.batches import tensors_in
from harness.watch.monitor import Monitor

FUNCTIONS = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")

MIN_BATCHES = 6
"""Batches whose targets must all be one number: by reasoning, more than a sorted dataset begins with where it is
shuffled, as it must be here."""

MIN_ROWS = 32
"""Targets that must have been seen."""


class TargetsTruncated(Check):
    """The targets of a regression are integers and all the same, so that there is nothing to learn.

    ## Why is this a bug?
    A cast to an integer cuts off everything after the decimal point: targets between 0 and 1 all become 0. The loss
    falls quickly, because the model only has to predict that number for everything.

    ## What to do
    Keep the targets as floats: .float() in the place of .long(), and no int() or integer column on the way.

    ## When it is right
    Targets that are floats are not reported, however similar they are. Neither are targets that differ in a single row,
    a loss in addition to another one, or targets that the script makes itself.
    """

    needs = "regression over a DataLoader"
    in_windows = "first"

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.value: float | None = None
        """Of all targets so far."""
        self.batches = self.rows = 0
        self.varied = False
        self.batch: int | None = None

    def on_backward_begins(self, event: BackwardBegins) -> None:
        if self.varied or event.inside_step or event.batch is None or not self.monitor.is_sampled():
            return
        calls = [call for call in event.losses if call.function in FUNCTIONS]
        alone = len(calls) == len(event.losses) == 1
        self.looked |= alone
        if not alone or event.batch.number == self.batch or not _came_as_integers(calls[0].target, event.batch.data):
            return
        self.batch = event.batch.number
        self._look(calls[0])

    def _look(self, call: LossCall) -> None:
        target = call.target.detach()
        lowest, highest = float(target.min()), float(target.max())
        if lowest != highest or self.value not in (None, lowest):
            self.varied = True
            return
        self.value = lowest
        self.batches += 1
        self.rows += target.numel()
        if self.batches >= MIN_BATCHES and self.rows >= MIN_ROWS:
            self.found(
                expected="targets that differ from row to row",
                observed=f"{call.function} is given {lowest:g} for each of {self.rows} rows, and their batches hold it "
                "as an integer",
                where=call.where,
                update=self.monitor.update,
            )


def _came_as_integers(target: torch.Tensor, data: Any) -> bool:
    """Whether a batch holds these numbers as integers."""
    found = [each for _, each in tensors_in(data) if each.numel() == target.numel() and len(each) == len(target)]
    integers = [each for each in found if not each.is_floating_point()]
    return len(found) == len(integers) == 1 and torch.equal(
        integers[0].reshape(-1).to(target), target.detach().reshape(-1)
    )
