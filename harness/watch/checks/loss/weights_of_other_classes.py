from __future__ import annotations

from harness.watch.check import Check
from harness.watch.events import End
from harness.watch.facts.class_weights import ClassWeights, listed, near
from harness.watch.monitor import Monitor


class WeightsOfOtherClasses(Check):
    """The class weights of the loss are in the order of other classes.

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

    status = "new"
    needs = "class weights"

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.weights = monitor.fact(ClassWeights)

    def on_end(self, event: End) -> None:
        weighted = self.weights.known()
        if weighted is None or weighted.of_positives:
            return
        self.looked = True
        for right, _ in weighted.unfitting():
            if near(weighted.scaled.sort().values, right.sort().values):
                self.found(
                    expected=f"weights that fall as the classes' shares rise, such as {listed(right)} for shares of "
                    f"{listed(weighted.shares)}",
                    observed=f"{listed(weighted.scaled)}: the same weights in the order of other classes",
                    where=weighted.where,
                )
                return
