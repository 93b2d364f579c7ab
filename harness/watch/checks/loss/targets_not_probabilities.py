from __future__ import annotations

from harness.watch.check import Check
from harness.watch.events import LossCall

FUNCTIONS = ("binary_cross_entropy", "binary_cross_entropy_with_logits")


class TargetsNotProbabilities(Check):
    """Targets of a binary cross-entropy are classes other than 0 and 1, so that the loss has no lower bound.

    ## Why is this a bug?
    The loss expects the probability of the second class. With a target of 2, or of -1, it falls without end as the
    logits grow: it becomes negative, and every row is pushed to the same side.

    ## What to do
    Give it 0 and 1: labels - 1 for classes 1 and 2, (labels + 1) / 2 for -1 and 1.

    For more than two classes, use `cross_entropy`.

    ## When it is right
    Targets that are not whole numbers, such as smoothed labels, are not reported. Neither are losses that are masked or
    weighted row by row, since a number may then stand for a missing label.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.BCEWithLogitsLoss.html
    """

    needs = "binary cross-entropy"
    in_windows = "first"
    explains = ("update::ascends",)

    def on_loss(self, event: LossCall) -> None:
        if event.function not in FUNCTIONS or not self.monitor.is_sampled() or not event.target.numel():
            return
        if event.options.get("reduction") == "none" or event.options.get("weight") is not None:
            return
        self.looked = True
        target = event.target.detach().float()
        if bool((target == target.round()).all()) and bool(((target < 0) | (target > 1)).any()):
            self.found(
                expected="targets of 0 and 1",
                observed=f"{event.function} is given targets from {float(target.min()):g} to {float(target.max()):g}",
                where=event.where,
                update=self.monitor.update,
            )
