from __future__ import annotations

from weakref import WeakKeyDictionary

from torch.optim import Optimizer

from harness.torch_objects import held_by
from harness.watch.check import Check
from harness.watch.events import Load, Step, StepBegins
from harness.watch.monitor import Monitor


class StateEmptied(Check):
    """The optimizer's state is emptied in the middle of the training: its moments are lost.

    ## Why is this a bug?
    Adam's moments and SGD's momentum are averages over many updates. With `optimizer.state.clear()`, or a new dict in
    its place, they begin at 0 again, and so does the count by which Adam corrects them: the next update is as large as
    the learning rate allows, whatever the gradients are.

    ## What to do
    Leave `optimizer.state` as it is; `optimizer.load_state_dict` restores one that was saved.

    ## When it is right
    A state that is loaded, and moments that are scaled or set by hand while the count goes on, are not reported.
    Neither is an optimizer without such a count, such as plain SGD. The heads of several tasks may count differently,
    because each batch gives gradients to one of them. If you drop the moments on purpose, for example after weights
    were loaded or averaged, say so with an `--ignore`.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.optim.Optimizer.load_state_dict.html
    """

    id = "optimizer::state-emptied"
    needs = "second update of an optimizer that counts its steps"
    in_windows = "all"
    formerly = ("optimizer::made-again", "effect::optimizer-kept")

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.steps: WeakKeyDictionary[Optimizer, float] = WeakKeyDictionary()
        """How many steps each optimizer's state had counted after the latest one that was looked at."""

    def on_step_begins(self, event: StepBegins) -> None:
        if not event.sampled:
            return
        now, before = _counted(event.optimizer), self.steps.get(event.optimizer, 0.0)
        self.looked |= before > 0
        if now < before:
            self.found(
                expected=f"moments of {before:.0f} updates",
                observed="the optimizer's state was emptied in the middle of the training",
                where=event.where,
                update=event.update,
            )

    def on_step(self, event: Step) -> None:
        if event.sampled:
            self.steps[event.optimizer] = _counted(event.optimizer)

    def on_load(self, event: Load) -> None:
        if isinstance(event.into, Optimizer):
            self.steps.pop(event.into, None)


def _counted(optimizer: Optimizer) -> float:
    """The steps that its state counts."""
    states = (optimizer.state.get(p, {}) for p in held_by(optimizer))
    return max((float(state["step"]) for state in states if "step" in state), default=0.0)
