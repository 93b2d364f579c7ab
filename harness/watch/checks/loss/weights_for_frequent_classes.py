from __future__ import annotations

from harness.watch.check import Check
from harness.watch.events import End
from harness.watch.facts.class_weights import APART, ClassWeights, Weighted, listed, near
from harness.watch.monitor import Monitor


class WeightsForFrequentClasses(Check):
    """The class weights of the loss are larger for the frequent classes: shares instead of their inverses.

    ## Why is this a bug?
    Class weights are there to make up for how rare a class is. The shares or counts themselves do the opposite:
    frequent classes count even more, and the model always predicts them. As `pos_weight`, positives divided by
    negatives do the same.

    ## What to do
    Give the loss the inverses: `counts.sum() / (classes * counts)`; as `pos_weight` negatives divided by positives.

    ## When it is right
    Weights that are not a power of the classes' shares are not reported: they were chosen for a reason. The shares are
    those of the targets that the loss gets, after any sampler; classes of about the same frequency prove nothing.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.BCEWithLogitsLoss.html
    """

    status = "new"
    needs = "class weights"
    formerly = ("loss::weights-of-other-classes",)
    explains = ("loss::weights-of-other-classes",)

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.weights = monitor.fact(ClassWeights)

    def on_end(self, event: End) -> None:
        weighted = self.weights.known()
        if weighted is None:
            return
        self.looked = True
        if weighted.of_positives:
            self._of_positives(weighted)
        else:
            self._of_classes(weighted)

    def _of_positives(self, weighted: Weighted) -> None:
        right = (1 - weighted.shares) / weighted.shares
        if near(weighted.weights, 1 / right) and bool(((right > APART) | (right < 1 / APART)).all()):
            self.found(
                expected=f"pos_weight of {listed(right)}: negatives by positives",
                observed=f"{listed(weighted.weights)}, the inverse",
                where=weighted.where,
            )

    def _of_classes(self, weighted: Weighted) -> None:
        for right, rising in weighted.unfitting():
            if near(weighted.scaled, rising):
                self.found(
                    expected=f"weights that fall as the classes' shares rise, such as {listed(right)} for shares of "
                    f"{listed(weighted.shares)}",
                    observed=f"{listed(weighted.scaled)}: they rise with the shares",
                    where=weighted.where,
                )
                return
