from __future__ import annotations

from harness.vary.chance import majority
from harness.vary.differences import Run, as_share, parting, score, steady
from harness.vary.relation import HELD, Outcome, Relation, Tried, Way, broken, lacks

SHARE_OF_CHANCE = 0.8
"""Share that must have changed of the labels that change by chance where a batch has all classes."""

SHARE_LEFT = 0.9
"""Share of a score's lead over the most frequent class from which on the lead counts as unchanged."""


class OfTrainingLabels(Relation):
    """A model trained on the labels of other rows scores nearly as well as one trained on the right labels.

    ## Why is this a bug?
    Labels of other rows teach only how frequent each class is. If a model still scores well, the score has another
    source: the metric compares something with itself, another model is scored, or the weights do not come from this
    training.

    ## What to do
    Compare the predictions with labels that come from the data alone, and evaluate the model that is trained.

    ## When it is right
    A model that scores well before training, or whose score measures what it learned without labels. Labels are
    exchanged in the batches, so an input column made from the label is not detected.

    ## References
    - https://arxiv.org/abs/1611.03530
    """

    new_since = "0.4.0"
    kind = "training labels"
    tries = "exchange the labels of training rows"

    @classmethod
    def way(cls, tried: Tried) -> Way | str:
        if not tried.trained:
            return "no DataLoader is used for training"
        base = majority(tried)
        return base if isinstance(base, str) else cls.of_loaders(tried.trained)

    @classmethod
    def judge(cls, tried: Tried, other: Run) -> Outcome:
        base = majority(tried)
        if isinstance(base, str):
            return lacks(base)
        if not other.account.exchanged:
            return lacks("no training batch has recognisable labels")
        if parting(tried.first, other, ("losses", "weights")) is None:
            return lacks("the training does not use the labels of its batches")
        before = score(steady(tried.first, tried.again)[0].values())
        after = score(steady(other, other)[0].values())
        if before is None or after is None:
            return lacks("the script reports no accuracy")
        if other.account.exchanged < SHARE_OF_CHANCE * base.apart * other.account.labels:
            return lacks("most labels of a batch are the same")
        left = (as_share(after) - base.share) / (as_share(before) - base.share)
        if as_share(after) < base.clearly or left < SHARE_LEFT:
            return HELD
        return broken(
            f"{after.name} near {base.share:.3g}, the share of the most frequent class, with labels of other rows",
            f"{after.value:g}, compared with {before.value:g} with their own labels",
            after.where,
        )
