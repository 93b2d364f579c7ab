from __future__ import annotations

from harness.watch.check import Check
from harness.watch.events import End, LossCall
from harness.watch.facts.batches import labels_of
from harness.watch.monitor import Monitor

MIN_ROWS = 32
"""Labels that are looked at before something is said of all of them. Neither half nor double of it changes a verdict of
the corpus."""

MOST_ROWS = 4096
"""Rows of a loss call up to which their labels are looked at one by one."""


class OneClass(Check):
    """All rows that are trained on have one label.

    ## Why is this a bug?
    A single class for all rows teaches a constant: the loss falls to 0, and the model gives the same answer for every
    row. The usual reasons are a wrong column, an index that does not advance, or data that are sorted by class and then
    cut.

    ## What to do
    Look at the column that becomes the labels, and at the order of the rows.

    ## When it is right
    Rows without a label (-100) and labels that the script makes for a contrastive loss are not reported.
    """

    needs = "labels of classes"
    formerly = ("inputs::wrong-labels", "inputs::labels")
    explains = ("loss::not-finite", "loss::constant", "gradients::cut-off")

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.classes: set[int] = set()
        """Labels of rows, until two differ."""
        self.rows = 0
        """With these."""
        self.where: str | None = None
        """The latest loss that they were given to."""

    def on_loss(self, event: LossCall) -> None:
        if event.function != "cross_entropy" or event.target.dim() != 1 or event.target.is_floating_point():
            return
        self.looked = True
        labels = event.target
        if event.batch is None or event.input.dim() != 2 or len(labels) > MOST_ROWS or len(self.classes) > 1:
            return
        if labels_of(event.batch.data) == labels.tolist():  # others are made by the script, as a contrastive loss's are
            self.classes.update(labels.tolist())
            self.rows += len(labels)
            self.where = event.where

    def on_end(self, event: End) -> None:
        if self.rows >= MIN_ROWS and len(self.classes) == 1:
            self.found(
                expected="rows of more than one class",
                observed=f"all {self.rows} rows that were trained on have the label {next(iter(self.classes))}",
                where=self.where,
                update=1,
            )
