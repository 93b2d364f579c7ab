from __future__ import annotations

from harness.watch.check import HELD, Check, Found, NothingToJudge, Verdict
from harness.watch.checks.rows.observations.rows_of_slices import HeldOutRows, SlicesTrained

MIN_SHARE = 0.02
"""Smallest share of the rows that is worth a word."""


class TailNeverSeen(Check):
    """The last training rows are never in a batch.

    ## Why is this a bug?
    `for i in range(len(x) // batch)` leaves out the remainder of the division. With another order in each epoch, other
    rows are left out each time; without one, it is always the same rows and, if they are sorted, all rows of a class.

    ## What to do
    Loop to the end, `for i in range(0, len(x), batch)`, or draw a new order before each epoch.

    ## When it is right
    Rows that are shuffled before each epoch, and last rows that are evaluated, are not reported. Neither is a remainder
    of less than 2% of all rows, or the end of a text that a language model is trained on.
    """

    new_since = "0.3.0"
    severity = "warning"

    def judge(self, fact: SlicesTrained) -> Verdict:
        if not MIN_SHARE * fact.rows <= fact.left < fact.longest:
            return HELD
        return Found(
            expected="each row in some batch",
            observed=f"the last {fact.left} of {fact.rows} rows were never trained on in {fact.epochs} epochs, which "
            f"all have the same batches, of {fact.longest} rows each",
        )


class TestRowsInLoss(Check):
    """Held-out rows are in the loss, so the model is trained on rows that it is evaluated on.

    ## Why is this a bug?
    A fold that is left out of the wrong list, or a mask of a graph's nodes that includes the test nodes, teaches the
    model the labels that it is asked for later. The score says how well it remembers them.

    ## What to do
    Compute the loss over the training rows alone; make a separate list of rows for each split, and check that they
    don't overlap.

    ## When it is right
    Training rows that are scored along with others are not reported: the check looks only at rows that the script calls
    test, validation or held out, and only if they are not all that the model is trained on. Rows are recognised by
    their content, and not looked at if one of them comes twice in a batch. Pseudo-labels are not reported either: the
    labels of those rows in the loss are what a model predicted before. A model that is retrained on all rows, after
    its settings were chosen, has nothing left to be evaluated on.
    """

    new_since = "0.3.0"
    __test__ = False  # it is no class of pytest's

    def judge(self, fact: HeldOutRows) -> Verdict:
        if not fact.both:
            return HELD
        if fact.pseudo:
            return NothingToJudge(
                "the labels of the held-out rows in the loss are a model's predictions, not their own"
            )
        return Found(
            expected=f"a loss without the rows of {fact.name}",
            observed=f"{fact.both} of the {fact.rows} rows of {fact.name} are among the {fact.trained} rows in the "
            "loss: the model was trained on test rows",
        )
