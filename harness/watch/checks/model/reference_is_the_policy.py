from __future__ import annotations

import math

from torch import nn

from harness.watch.check import Check
from harness.watch.events import BackwardBegins, Forward
from harness.watch.facts.losses import DifferentiatedLoss
from harness.watch.monitor import Monitor

ENOUGH = 5
"""Backward passes in a row with that loss. By reasoning: a preference loss begins with it, and leaves it at once."""

NEAR = 1e-5
"""How near to ln 2: rounding of float32 and of a mean is below."""


class ReferenceIsThePolicy(Check):
    """The reference that a preference loss compares with is the model that is trained.

    ## Why is this a bug?
    DPO and its like compare how much more likely the policy finds the chosen answer than the reference does, and
    likewise the rejected one. If `reference = policy` names the same object twice, or both share their weights, both
    margins are 0 in every update: the loss stays at ln 2 = 0.693. The gradients that remain train the model with
    nothing to hold it back.

    ## What to do
    Copy the model before it is trained: `reference = copy.deepcopy(policy).eval().requires_grad_(False)`.

    ## When it is right
    A two-class loss that is ln 2 in the first updates, or that moves at all, is not reported. Nothing is reported
    unless each update has a forward pass without gradients. A model with adapters is compared with itself without them,
    and is not looked at.

    ## References
    - https://huggingface.co/docs/trl/dpo_trainer
    """

    status = "new"
    needs = "forward passes of a reference beside those that are trained"
    explains = ("loss::constant",)

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.loss = monitor.fact(DifferentiatedLoss)
        self.seen = 0

    def on_backward_begins(self, event: BackwardBegins) -> None:
        value = self.loss.value
        trained = [each for each in event.forwards if each.gradients]
        beside = [each for each in event.forwards if not each.gradients and _is_asked_alike(each, trained)]
        if value is None or not trained or not beside:
            return
        self.looked = True
        shared = [each for each in beside if any(_share(each.model, other.model) for other in trained)]
        self.seen = self.seen + 1 if shared and abs(value - math.log(2)) < NEAR else 0
        if self.seen >= ENOUGH and self.monitor.updates_made > 0:
            self.found(
                expected="a reference with weights of its own, from which the policy moves away",
                observed=f"the loss has been ln 2 = {value:.4f} in {ENOUGH} backward passes in a row, and the "
                "reference's forward passes go through the weights that are trained: it is the policy itself",
                where=shared[0].where,
                update=self.monitor.update,
            )


def _is_asked_alike(forward: Forward, trained: list[Forward]) -> bool:
    ids = forward.tensors.get("input_ids")
    given = [each.tensors.get("input_ids") for each in trained]
    return ids is not None and any(each is not None and each.shape == ids.shape for each in given)


def _share(one: nn.Module, other: nn.Module) -> bool:
    """Whether two models have the same trainable tensors, and the first goes through them: an adapter may be off."""
    if hasattr(one, "peft_config"):
        return False
    trained = {id(each) for each in other.parameters() if each.requires_grad}
    return bool(trained) and trained <= {id(each) for each in one.parameters()}
