from __future__ import annotations

from harness.watch.check import Check
from harness.watch.events import BackwardBegins
from harness.watch.facts.labels import equal
from harness.watch.facts.rows_of_loss import GivenRows, RowsOfLoss
from harness.watch.monitor import Monitor

MIN_UPDATES_IN_A_ROW = 2
"""Updates in a row with other labels: by reasoning, one alone may be an accident of equal labels."""


class OfAnotherBatch(Check):
    """The loss compares the logits of one batch with labels of another, or with its own in another order.

    ## Why is this a bug?
    Logits that are compared with the labels of other rows teach the model only chance: with two classes the loss still
    falls to that of the class frequencies.

    ## What to do
    Pass the labels on as they come with the batch.

    ## When it is right
    Class weights and labels that are not among those of the latest batches (mixed or made on the fly) are not reported,
    nor are logits that are reordered, or selected, together with their labels.
    """

    needs = "labels of classes in a batch of a DataLoader"
    in_windows = "first"
    formerly = ("loss::of-the-batch",)

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.rows = monitor.fact(RowsOfLoss)
        self.wrong = 0
        """Updates with other labels in a row."""

    def on_backward_begins(self, event: BackwardBegins) -> None:
        given = self.rows.given
        self.looked |= self.rows.has_labels
        if not self.rows.judged:
            return
        what = None if given is None else _others(given)
        self.wrong = 0 if what is None else self.wrong + 1
        if given is not None and what is not None and self.wrong >= MIN_UPDATES_IN_A_ROW:
            self.found(
                expected="the loss of the logits and labels of one batch",
                observed=f"the loss function is given {what}",
                where=given.call.where,
                update=self.monitor.update,
            )


def _others(given: GivenRows) -> str | None:
    """What labels the logits meet, if not their own."""
    if given.aligned or any(equal(target, given.own) for target in given.targets):
        return None
    if all(equal(target.sort()[0], given.own.sort()[0]) for target in given.targets):
        return "the batch's labels in another order"
    if given.labels_of_some:
        return "the labels of other rows"
    previous = any(equal(target, older) for target in given.targets for older in given.others)
    return "the labels of another batch" if previous else None
