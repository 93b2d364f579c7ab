from __future__ import annotations

from harness.torch_objects import held_by
from harness.watch.check import Check
from harness.watch.events import End, StepBegins
from harness.watch.facts.parameters import Parameters
from harness.watch.monitor import Monitor


class HoldsOnlyFrozen(Check):
    """All parameters that the optimizer holds are frozen: its steps change nothing.

    ## Why is this a bug?
    Nothing that the optimizer holds gets a gradient, and what is not frozen has no optimizer. Usually the wrong half
    of the model was frozen, or the wrong half was given to the optimizer; the model stays what it was.

    ## What to do
    Give the optimizer the parameters that are trained, after freezing the others.

    ## When it is right
    An optimizer of a part that is frozen is reported only if no optimizer has anything to change in the whole training:
    parts may be unfrozen later, one after the other.

    ## References
    - https://discuss.pytorch.org/t/84911
    """

    needs = "optimizer step"
    formerly = ("parameters::unchanged", "effect::parameters-change")
    explains = ("gradients::lost", "optimizer::missing-parameters")

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.parameters = monitor.fact(Parameters)
        self.frozen: tuple[str | None, int] | None = None
        """The first optimizer that stepped with nothing to change: where it was made, and in which update."""
        self.trains = False
        """Whether any optimizer stepped with something to change."""

    def on_step_begins(self, event: StepBegins) -> None:
        self.looked = True
        if self.trains:
            return
        held = held_by(event.optimizer)
        self.trains = any(p.requires_grad or p.grad is not None for p in held)
        if held and not self.trains and self.frozen is None:
            self.frozen = self.monitor.optimizers[event.optimizer].made or event.where, event.update

    def on_end(self, event: End) -> None:
        if self.frozen is None or self.trains or not self.monitor.complete or self.parameters.by_hand:
            return
        where, update = self.frozen
        self.found(
            expected="an optimizer with parameters that are trained",
            observed="all that it holds are frozen (requires_grad is False)",
            where=where,
            update=update,
        )
