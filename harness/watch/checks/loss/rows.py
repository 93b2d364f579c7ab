from __future__ import annotations

from harness.watch.check import HELD, Check, Found, Verdict
from harness.watch.facts.rows_of_loss import LabelsOfLoss

OTHERS_IN_A_ROW = 2
"""Updates in a row with other labels: by reasoning, one alone may be an accident of equal labels."""

PARTIAL_IN_A_ROW = 2
"""Updates in a row with a part of the labels: by reasoning, one alone may be an accident of equal labels."""


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

    formerly = ("loss::of-the-batch",)

    def judge(self, fact: LabelsOfLoss) -> Verdict:
        if fact.others_in_a_row < OTHERS_IN_A_ROW:
            return HELD
        return Found(
            expected="the loss of the logits and labels of one batch",
            observed=f"the loss function is given {fact.others}",
        )


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

    formerly = ("loss::of-another-batch", "loss::of-the-batch")

    def judge(self, fact: LabelsOfLoss) -> Verdict:
        if fact.partial_in_a_row < PARTIAL_IN_A_ROW:
            return HELD
        return Found(
            expected=f"the loss of all {fact.rows} rows of a batch",
            observed=f"that of {fact.given} of them",
        )
