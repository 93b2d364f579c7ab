from __future__ import annotations

from harness.watch.check import Check
from harness.watch.events import BackwardBegins
from harness.watch.facts.rows_of_loss import RowsOfLoss
from harness.watch.monitor import Monitor

MIN_UPDATES_IN_A_ROW = 2
"""Updates in a row with a part of the labels: by reasoning, one alone may be an accident of equal labels."""


class OfSomeRows(Check):
    """The loss leaves out rows of the batch: it is given the first of them, or the last, and no others.

    ## Why is this a bug?
    A loss over the first row, or over a slice that was meant for another batch size, learns from only part of the data;
    the rest is computed in vain. The loss falls as it should.

    ## What to do
    Give the loss function all logits and all labels of the batch.

    ## When it is right
    Rows that are selected by their content are not reported, nor is a loss over some rows in addition to another one.
    """

    needs = "labels of classes in a batch of a DataLoader"
    in_windows = "first"
    formerly = ("loss::of-another-batch", "loss::of-the-batch")

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.rows = monitor.fact(RowsOfLoss)
        self.partial = 0
        """Updates with a part of the labels in a row."""

    def on_backward_begins(self, event: BackwardBegins) -> None:
        given = self.rows.given
        self.looked |= self.rows.has_labels
        if given is None:
            return
        self.partial = self.partial + 1 if given.partial else 0
        if self.partial >= MIN_UPDATES_IN_A_ROW:
            self.found(
                expected=f"the loss of all {len(given.own)} rows of a batch",
                observed=f"that of {max(map(len, given.targets))} of them",
                where=given.call.where,
                update=self.monitor.update,
            )
