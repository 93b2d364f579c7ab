from __future__ import annotations

from harness.watch.check import HELD, Check, Found, Verdict
from harness.watch.checks.loss.observations.rows_of_loss import LabelsOfLoss

OTHERS_IN_A_ROW = 2
"""Updates in a row with other labels: by reasoning, one alone may be an accident of equal labels."""

PARTIAL_IN_A_ROW = 2
"""Updates in a row with a part of the labels: by reasoning, one alone may be an accident of equal labels."""


class OfAnotherBatch(Check):
    """The loss compares the logits of a batch with the labels of another batch, or with its own in the wrong order.

    ## Why is this a bug?
    Logits that are compared with the labels of other rows teach the model only chance: with two classes the loss still
    falls to that of the class frequencies.

    ## What to do
    Give the loss function the labels that came with the batch, in the same order.

    ## When it is right
    Class weights, and labels that are not among those of the latest batches (mixed or made on the fly), are not
    reported. Neither are logits that are reordered or selected together with their labels.
    """

    def judge(self, fact: LabelsOfLoss) -> Verdict:
        if fact.others_in_a_row < OTHERS_IN_A_ROW:
            return HELD
        return Found(
            expected="logits and labels of the same batch, in the same order",
            observed=f"the loss function is given {fact.others}",
        )


class OfSomeRows(Check):
    """The loss is computed from only the first or the last rows of the batch.

    ## Why is this a bug?
    A loss over the first row, or over a slice that was meant for another batch size, learns from only part of the data;
    the rest is computed in vain. The loss falls as it should.

    ## What to do
    Give the loss function all logits and all labels of the batch.

    ## When it is right
    Rows that are selected by their content are not reported, nor is a loss over some rows in addition to another one.
    """

    def judge(self, fact: LabelsOfLoss) -> Verdict:
        if fact.partial_in_a_row < PARTIAL_IN_A_ROW:
            return HELD
        return Found(
            expected=f"a loss of all {fact.rows} rows of the batch",
            observed=f"the loss function is given only {fact.given} of the {fact.rows} rows",
        )
