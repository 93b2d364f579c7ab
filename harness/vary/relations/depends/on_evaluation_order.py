from __future__ import annotations

from harness.vary.differences import Another, Run
from harness.vary.relation import HELD, Outcome, Relation, Tried, Way, broken, lacks


class OnEvaluationOrder(Relation):
    """With its rows in another order, an evaluation of the same model reports another number.

    ## Why is this a bug?
    A metric over all rows does not know their order. Where it does, the number is of some rows alone (those of the last
    batch), the batches do not count equally, or rows are compared with labels of others: predictions that are collected
    from a loader beside labels in the order of a file.

    ## What to do
    Take inputs and labels from the same batch. Add up over all batches, and divide once.

    ## When it is right
    Differences below half a standard error of the number are not reported. An evaluation that hands on a state from one
    batch to the next, as a language model does with one long text, needs the order, and is not changed.
    """

    new_since = "0.4.0"
    kind = "evaluation order"
    tries = "evaluate the rows in another order"

    @classmethod
    def way(cls, tried: Tried) -> Way | str:
        if not tried.evaluated:
            return "no DataLoader is used for evaluations alone"
        if tried.first.account.carries:
            return "the evaluation hands on to a batch what the one before gave"
        loaders = [each for each in tried.evaluated if each.ordered and each.batches > 1]
        return (
            cls.of_loaders(loaders) if loaders else "each evaluation is one batch, or in an order of the script's own"
        )

    @classmethod
    def judge(cls, tried: Tried, other: Run) -> Outcome:
        if other.account.otherwise:
            return lacks("the model says something else each time (depends::on-chance)")
        apart = tried.numbers_apart(other)
        if not isinstance(apart, Another):
            return apart or HELD
        return broken(
            f"the same {apart.name} with the rows in another order, {apart.one.value:g}",
            f"{apart.name} {apart.other.value:g}",
            apart.one.where,
        )
