from __future__ import annotations

from harness.watch.check import Check
from harness.watch.events import LossCall, Thresholded
from harness.watch.monitor import Monitor

PROBABILITY = 0.5
"""The threshold of which it is certain that a probability is meant."""


class ThresholdOfProbabilities(Check):
    """Logits are compared with 0.5, which is a threshold of probabilities.

    ## Why is this a bug?
    A model that is trained with `binary_cross_entropy_with_logits` outputs logits, from minus to plus infinity, and a
    probability of one half is a logit of 0. If logits are compared with 0.5, rows count as positive only from a
    probability of 0.62: positives are missed, and accuracy, recall and F1 are those of another decision.

    ## What to do
    Compare probabilities, torch.sigmoid(logits) > 0.5, or the logits with 0.

    ## When it is right
    When a threshold of 0.5 was chosen for logits, on validation data. Other thresholds are not reported.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.BCEWithLogitsLoss.html
    """

    status = "new"
    needs = "threshold of what a model says"

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.of_logits: set[int] = set()
        """The numbers of models whose outputs were given to a loss of logits."""

    def on_loss(self, event: LossCall) -> None:
        if event.function == "binary_cross_entropy_with_logits" and self.monitor.forwards:
            latest = self.monitor.forwards[-1]
            if latest.logits is not None and latest.logits.numel() == event.input.numel():
                self.of_logits.add(self.monitor.number_of(latest.model))

    def on_thresholded(self, event: Thresholded) -> None:
        if self.monitor.number_of(event.forward.model) not in self.of_logits:
            return
        self.looked = True
        if event.threshold == PROBABILITY:
            self.found(
                expected="a threshold of logits, such as 0",
                observed="the logits themselves are compared with 0.5",
                where=event.where,
                update=self.monitor.updates_made,
            )
