from __future__ import annotations

import torch

from harness.watch.check import Check
from harness.watch.events import End, LossCall

MIN_TARGETS = 200
"""Targets from which on the shares of the classes are known well enough. A guess."""

MOST_TARGETS = 100_000
"""Targets that are counted: by reasoning, more change no share."""

NEAR = 0.25
"""How near weights must be, relatively, to those that the classes' shares give. A guess: a split's shares differ from
those of all rows by less."""

APART = 2.0
"""By which factor the most and the least frequent class must differ, and a weight from that of its class. A guess."""

POWERS = (1.0, 0.5)
"""Of the shares: weights are their inverses, or the inverses of their roots."""


class WeightsOfOtherClasses(Check):
    """The class weights of the loss are in the order of other classes, or larger for the frequent ones.

    ## Why is this a bug?
    `weight` goes by the number of the class. Weights in the order of `Counter.most_common()`, of the classes' names or
    of a file give a rare class the weight of a frequent one; shares instead of their inverses make what is frequent
    count still more. Of `pos_weight`, which is negatives by positives, the inverse does the same.

    ## What to do
    Count with `torch.bincount(labels, minlength=classes)`, and give the loss `counts.sum() / (classes * counts)`; as
    `pos_weight` the number of negatives divided by that of positives.

    ## When it is right
    Weights that no power of the classes' shares gives, in whatever order, are not reported: they were chosen for a
    reason. The shares are those of the targets that the loss is given, after any sampler.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.CrossEntropyLoss.html
    """

    id = "loss::weights-of-other-classes"
    status = "new"
    needs = "class weights"
    counts: torch.Tensor | None = None
    """Targets of each class so far; of a binary loss those of 1."""
    targets = 0
    call: tuple[str, torch.Tensor, str | None] | None = None
    """The function, the weights and the line of the losses that are counted."""

    def on_loss(self, event: LossCall) -> None:
        given = event.options.get("pos_weight" if event.function.endswith("with_logits") else "weight")
        if not torch.is_tensor(given) or self.targets >= MOST_TARGETS:
            return
        weights, target = given.detach().flatten().cpu(), event.target.detach()
        if self.call is not None and not (event.where == self.call[2] and torch.equal(weights, self.call[1])):
            return
        if event.function in ("cross_entropy", "nll_loss"):
            target = target[(target >= 0) & (target < len(weights))] if not target.is_floating_point() else target[:0]
            counts = torch.bincount(target.flatten().long(), minlength=len(weights)).cpu()
            targets = target.numel()
        elif event.function == "binary_cross_entropy_with_logits" and target.numel() % len(weights) == 0:
            target = target.reshape(-1, len(weights))
            counts, targets = (target > 0.5).sum(0).cpu(), len(target)
        else:
            return
        if not targets:
            return
        self.call = self.call or (event.function, weights, event.where)
        self.counts = counts if self.counts is None else self.counts + counts
        self.targets += targets

    def on_end(self, event: End) -> None:
        if self.call is None or self.counts is None or self.targets < MIN_TARGETS:
            return
        function, weights, where = self.call
        shares = self.counts.double() / self.targets
        if not bool((shares > 0).all()) or not bool((weights > 0).all()):
            return
        self.looked = True
        if function == "binary_cross_entropy_with_logits":
            if bool((shares < 1).all()):
                self._of_positives(weights.double(), shares, where)
        elif len(weights) > 1:
            self._of_classes(weights.double(), shares, where)

    def _of_positives(self, weights: torch.Tensor, shares: torch.Tensor, where: str | None) -> None:
        right = (1 - shares) / shares
        if _near(weights, 1 / right) and bool(((right > APART) | (right < 1 / APART)).all()):
            self.found(
                expected=f"pos_weight of {_listed(right)}: negatives by positives",
                observed=f"{_listed(weights)}, the inverse",
                where=where,
            )

    def _of_classes(self, weights: torch.Tensor, shares: torch.Tensor, where: str | None) -> None:
        if shares.max() < APART * shares.min():
            return
        scaled = weights / weights.mean()
        for power in POWERS:
            right = shares**-power / (shares**-power).mean()
            grows = shares**power / (shares**power).mean()
            if _near(scaled, right):
                return
            ratio = scaled / right
            permuted = _near(scaled.sort().values, right.sort().values)
            if not (permuted or _near(scaled, grows)) or ratio.max() < APART:
                continue
            self.found(
                expected=f"weights that fall as the classes' shares rise, such as {_listed(right)} "
                f"for shares of {_listed(shares)}",
                observed=f"{_listed(scaled)}: "
                + ("the same weights in the order of other classes" if permuted else "they rise with the shares"),
                where=where,
            )
            return


def _near(one: torch.Tensor, other: torch.Tensor) -> bool:
    return bool(((one - other).abs() <= NEAR * other).all())


def _listed(values: torch.Tensor) -> str:
    return ", ".join(f"{value:.2f}" for value in values[:6].tolist()) + (", ..." if len(values) > 6 else "")
