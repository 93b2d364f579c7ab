"""Class weights: those that a loss was given, and the shares of the classes among its targets."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from harness.watch.events import End, Fact, LossCall
from harness.watch.recogniser import Recogniser

MIN_TARGETS = 200
"""Targets from which on the shares of the classes are known well enough."""

MOST_TARGETS = 100_000
"""Targets that are counted: by reasoning, more change no share."""

CLASS_WEIGHT_RTOL = 0.25
"""How near weights must be, relatively, to those that the classes' shares give. A split's shares differ from those of
all rows by less."""

APART = 2.0
"""Factor by which the most and the least frequent class must differ, and a weight from that of its class. Half or
double of it changes verdicts (scripts/records/margins.json)."""

POWERS = (1.0, 0.5)
"""Powers of the shares: weights are their inverses, or the inverses of their roots."""


class Weighted(Fact):
    """The weights of a loss of a training that is over, beside what the shares of its targets' classes give.

    Told where there were enough targets of every class. ``where`` is the loss.
    """

    needs = "class weights"
    of_run = True
    weights: torch.Tensor
    """(classes,): as they were given."""
    shares: torch.Tensor
    """(classes,): of the targets; of ``pos_weight``, of those that are 1."""
    of_positives: bool = False
    """Whether they are a ``pos_weight``, which is negatives by positives."""

    @property
    def scaled(self) -> torch.Tensor:
        """The weights with a mean of 1."""
        return self.weights / self.weights.mean()

    def unfitting(self) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """Weights that fall as the shares rise, and weights that rise with them, scaled alike, for each power.

        None where some power gives the weights, class by class, or the classes are about as frequent; and no power
        by which a weight is not far from its class's.
        """
        powers = [(self.shares**-power, self.shares**power) for power in POWERS]
        scaled = [(falling / falling.mean(), rising / rising.mean()) for falling, rising in powers]
        if self.shares.max() >= APART * self.shares.min() and not any(near(self.scaled, right) for right, _ in scaled):
            yield from (each for each in scaled if (self.scaled / each[0]).max() >= APART)


class ClassWeights(Recogniser):
    """The first loss that is given class weights, and the classes of its targets."""

    makes = (Weighted,)

    def begin(self) -> None:
        self._counts: torch.Tensor | None = None
        """Targets of each class so far; of a binary loss those of 1."""
        self._targets = 0
        self._call: tuple[str, torch.Tensor, str | None] | None = None
        """The function, the weights and the line of the losses that are counted."""

    def on_loss(self, event: LossCall) -> None:
        given = event.options.get("pos_weight" if event.function.endswith("with_logits") else "weight")
        if not torch.is_tensor(given) or self._targets >= MOST_TARGETS:
            return
        weights, target = given.detach().flatten().cpu(), event.target.detach()
        if self._call is not None and not (event.where == self._call[2] and torch.equal(weights, self._call[1])):
            return
        if event.of_classes:
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
        self._call = self._call or (event.function, weights, event.where)
        self._counts = counts if self._counts is None else self._counts + counts
        self._targets += targets

    def on_end(self, event: End) -> None:
        if self._call is None or self._counts is None or self._targets < MIN_TARGETS:
            return
        function, weights, where = self._call
        shares, of_positives = self._counts.double() / self._targets, function.startswith("binary")
        if not bool((shares > 0).all()) or not bool((weights > 0).all()):
            return
        if bool((shares < 1).all()) if of_positives else len(weights) > 1:
            self.tell(Weighted(weights=weights.double(), shares=shares, of_positives=of_positives, where=where))


def near(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether weights are those that shares give, class by class."""
    return bool(((one - other).abs() <= CLASS_WEIGHT_RTOL * other).all())


def listed(values: torch.Tensor) -> str:
    """The first numbers, as a message shows them."""
    return ", ".join(f"{value:.2f}" for value in values[:6].tolist()) + (", ..." if len(values) > 6 else "")
