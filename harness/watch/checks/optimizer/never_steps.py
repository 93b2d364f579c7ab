from __future__ import annotations

from harness.watch.check import Check
from harness.watch.events import Backward, End
from harness.watch.facts.parameters import Parameters
from harness.watch.monitor import Monitor

FEWEST_BACKWARD_PASSES = 4
"""Backward passes without a single step from which on that is no accident. Neither half nor double of it changes a
verdict of the corpus."""

FEWEST_CLEARED = 16
"""Calls of an optimizer's zero_grad without a step of it from which on a step is missing. An optimizer that steps once
in several batches does so within these. Neither half nor double of it changes a verdict of the corpus."""


class NeverSteps(Check):
    """An optimizer is made, gradients are computed for it, and its `step()` is never called.

    ## Why is this a bug?
    Gradients change nothing by themselves: the loss stays that of the first weights to the end. If a script has an
    optimizer for each of several networks, the one whose step is missing stays as it was made.

    ## What to do
    Call `optimizer.step()` after the backward pass; where micro-batches are added up, for each full window.

    ## When it is right
    Scripts that only look at gradients a few times are not reported, nor are updates that are written by hand. If other
    optimizers do step, one that does not is reported only if its gradients are cleared in the loop and nothing else
    changes what it holds.
    """

    needs = "backward pass with an optimizer"
    formerly = ("parameters::unchanged", "effect::parameters-change")
    explains = ("gradients::lost", "optimizer::missing-parameters")

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.parameters = monitor.fact(Parameters)
        self.backward_passes = 0

    def on_backward(self, event: Backward) -> None:
        self.backward_passes += 1

    def on_end(self, event: End) -> None:
        made_at = self.monitor.optimizer_made_at
        self.looked = self.monitor.stepped or (bool(made_at) and self.backward_passes >= FEWEST_BACKWARD_PASSES)
        if self.parameters.by_hand or not self.looked:
            return
        if self.monitor.stepped:
            self._one_of_several()
        else:
            self.found(
                expected="a call of optimizer.step() for each update",
                observed=f"{self.backward_passes} backward passes and not one optimizer step",
                where=made_at[-1],
                update=1,
            )

    def _one_of_several(self) -> None:
        """An optimizer that takes part in the loop and makes no step, while others do."""
        seen = self.parameters
        updated = {each for held in seen.optimizers if held.stepped for each in held.all}
        for held in seen.optimizers:
            unused = not held.stepped and held.cleared >= FEWEST_CLEARED and held.reached and not updated & held.all
            if unused and self.monitor.complete:
                self.found(
                    expected="a call of step() for every optimizer whose gradients are cleared in the loop",
                    observed=f"this one made none, and nothing changes {seen.shown(held.all)}",
                    where=held.made,
                    update=1,
                    hint="Call its step() after the backward pass of its loss.",
                )
