from __future__ import annotations

from harness.vary.differences import Run, are_equal, steady
from harness.vary.relation import HELD, Outcome, Relation, Tried, Way, broken, lacks
from harness.watch.facts.formulas import RATES

SHARE = 0.1
"""Share of changed labels from which on a score of these rows must change."""


class OfHeldOutRows(Relation):
    """With different labels on the held-out rows, every number that the script reports stays the same.

    ## Why is this a bug?
    A score says how well a model's answers fit the labels, so it must fall with the labels of other rows. If it does
    not, something else is scored: the training rows, a copy, predictions against themselves, or the previous
    evaluation.

    ## What to do
    Check which labels the metric gets, and which rows the model was called with.

    ## When it is right
    A script that reports no score of these rows. The rows also come in a different order, so that labels taken from
    elsewhere by position belong to other rows as well.
    """

    new_since = "0.4.0"
    kind = "held-out labels and order"
    tries = "exchange the labels of held-out rows, and the rows"

    @classmethod
    def way(cls, tried: Tried) -> Way | str:
        loaders = [each for each in tried.evaluated if each.exchangeable]
        if loaders and not all(each.ordered for each in loaders):
            return "the script orders the rows of an evaluation itself"
        return cls.of_loaders(loaders) if loaders else "no evaluation batch has recognisable labels"

    @classmethod
    def judge(cls, tried: Tried, other: Run) -> Outcome:
        account, (same, _) = other.account, steady(tried.first, tried.again)
        scores = {key: each for key, each in same.items() if "train" not in each.name}
        if not scores:
            return lacks("the script reports no evaluation number that is the same in two unchanged runs")
        if account.exchanged < SHARE * account.labels:
            return lacks(f"only {account.exchanged} of {account.labels} labels changed, because most are the same")
        if not are_equal(scores, other):
            return HELD
        fits = tried.first.account.fit, account.fit
        if None in fits:
            return lacks("the model's outputs cannot be compared with the labels of the batches")
        if fits[0] == fits[1]:
            return lacks("the model's outputs fit the exchanged labels as well; perhaps they are the same for all rows")
        series = max(scores.values(), key=lambda each: (each.reported[-1].kind in RATES, each.reported[-1].at))
        return broken(
            f"a different {series.name} with different labels on {account.exchanged} of {account.labels} held-out rows",
            f"the same value, {series.reported[-1].value:g}; all other numbers are the same, too",
            series.where,
        )
