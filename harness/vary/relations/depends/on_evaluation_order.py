from __future__ import annotations

from harness.vary.differences import Run
from harness.vary.relation import Outcome, Relation, Tried, Way, lacks


class OnEvaluationOrder(Relation):
    """An evaluation that shuffles its rows reports a different number when they come in a different order.

    ## Why is this a bug?
    A metric over all rows should not depend on their order. If it does, predictions may be compared with the labels of
    other rows: predictions from a shuffled loader with labels in the order of a file. Or the number describes only some
    rows, such as those of the last batch.

    ## What to do
    Take inputs and labels from the same batch, or give the evaluation's loader `shuffle=False`.

    ## When it is right
    Differences below half a standard error of the number are not reported. A loader that yields rows in the order of
    the dataset is left alone, because labels may be matched by position. So is an evaluation that passes state from one
    batch to the next.
    """

    new_since = "0.4.0"
    kind = "evaluation order"
    tries = "evaluate the rows in a different order"

    @classmethod
    def way(cls, tried: Tried) -> Way | str:
        if not tried.evaluated:
            return "no DataLoader is used for evaluations alone"
        if tried.first.account.carries:
            return "the evaluation passes state from one batch to the next"
        loaders = [each for each in tried.evaluated if each.ordered and each.shuffles]
        return cls.of_loaders(loaders) if loaders else "no evaluation shuffles its rows"

    @classmethod
    def judge(cls, tried: Tried, other: Run) -> Outcome:
        if other.account.otherwise:
            return lacks("the model gives different outputs each time (depends::on-chance)")
        return tried.same_numbers(other, "with the rows in a different order")
