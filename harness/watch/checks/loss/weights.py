from __future__ import annotations

from harness.watch.check import HELD, NOTHING_TO_JUDGE, Check, Found, Verdict
from harness.watch.checks.loss.observations.class_weights import APART, Weighted, listed, near


class WeightsForFrequentClasses(Check):
    """The class weights of the loss are larger for frequent classes: class shares are used instead of their inverses.

    ## Why is this a bug?
    Class weights are there to make up for how rare a class is. The shares or counts themselves do the opposite:
    frequent classes count even more, and the model always predicts them. As `pos_weight`, positives divided by
    negatives do the same.

    ## What to do
    Invert the weights: `counts.sum() / (classes * counts)`; for `pos_weight`, divide negatives by positives.

    ## When it is right
    Weights that are not a power of the classes' shares are not reported: they were chosen for a reason. The shares are
    those of the targets that the loss gets, after any sampler; classes of about the same frequency prove nothing.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.BCEWithLogitsLoss.html
    """

    new_since = "0.3.0"
    explains = ("loss::weights-of-other-classes",)

    def judge(self, fact: Weighted) -> Verdict:
        if fact.of_positives:
            right = (1 - fact.shares) / fact.shares
            apart = bool(((right > APART) | (right < 1 / APART)).all())
            if not near(fact.weights, 1 / right) or not apart:
                return HELD
            return Found(
                expected=f"pos_weight of {listed(right)}: negatives divided by positives",
                observed=f"pos_weight of {listed(fact.weights)}, which is the inverse",
            )
        for right, rising in fact.unfitting():
            if near(fact.scaled, rising):
                return Found(
                    expected=f"weights that fall as the classes' shares rise, such as {listed(right)} for shares of "
                    f"{listed(fact.shares)}",
                    observed=f"weights of {listed(fact.scaled)}, which rise with the shares",
                )
        return HELD


class WeightsOfOtherClasses(Check):
    """The class weights of the loss are in the wrong order.

    ## Why is this a bug?
    `weight` is indexed by the number of the class. Weights in the order of `Counter.most_common()`, of the class names
    or of a file give a rare class the weight of a frequent one, and the other way round.

    ## What to do
    Count with `torch.bincount(labels, minlength=classes)`, and give the loss `counts.sum() / (classes * counts)`.

    ## When it is right
    Weights that are not a power of the classes' shares, in whatever order, are not reported: they were chosen for a
    reason. The shares are those of the targets that the loss gets, after any sampler.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.CrossEntropyLoss.html
    """

    new_since = "0.3.0"

    def judge(self, fact: Weighted) -> Verdict:
        if fact.of_positives:
            return NOTHING_TO_JUDGE
        for right, _ in fact.unfitting():
            if near(fact.scaled.sort().values, right.sort().values):
                return Found(
                    expected=f"weights that fall as the classes' shares rise, such as {listed(right)} for shares of "
                    f"{listed(fact.shares)}",
                    observed=f"weights of {listed(fact.scaled)}: the right values in the wrong order",
                )
        return HELD
