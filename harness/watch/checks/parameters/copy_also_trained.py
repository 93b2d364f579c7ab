from __future__ import annotations

from harness.watch.check import Check
from harness.watch.events import Step
from harness.watch.facts.copies import Copies
from harness.watch.monitor import Monitor

MIN_MEANS = 3
"""Means, and updates, from which on it is no accident. Neither half nor double of it changes a verdict of the
corpus."""


class CopyAlsoTrained(Check):
    """A moving average of the network gets gradients, and an optimizer steps it besides.

    ## Why is this a bug?
    A target that learns from the loss gives way to it: in self-distillation both networks can agree on a constant, and
    a target network no longer deserves its name. This happens when the optimizer gets `model.parameters()` and the
    target is a part of the model.

    ## What to do
    Give the optimizer the parameters of the network alone, and compute the target under `torch.no_grad()`, or with
    `requires_grad_(False)`.

    ## When it is right
    An average that no optimizer changes is not reported, whatever gradients it has. Neither are two networks with the
    same architecture that are both trained.
    """

    status = "new"
    needs = "moving average of a network"
    in_windows = "first"
    explains = ("parameters::modified-outside-optimizer",)

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.copies = monitor.fact(Copies)

    def on_step(self, event: Step) -> None:
        for each in self.copies.all:
            means = [weight for weight in each.weights if 0 < weight <= 1]
            if len(means) < MIN_MEANS:
                continue
            self.looked = True
            if each.steps >= MIN_MEANS:
                self.found(
                    expected="a target that only follows the network",
                    observed=f"{each.shown} follows the network by {means[-1]:.3g} of the way, and "
                    "its optimizer changes it by gradients, too: the target is trained",
                    where=each.where,
                    update=event.update,
                )
