from __future__ import annotations

from collections.abc import Iterator
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

    needs = "second update of an optimizer that counts its steps"
    in_windows = "all"
    formerly = ("optimizer::made-again", "effect::optimizer-kept")

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.steps: WeakKeyDictionary[Optimizer, float] = WeakKeyDictionary()
        """How many steps a tensor's state had counted after the optimizer's latest one that was looked at."""

    def on_step_begins(self, event: StepBegins) -> None:
        if not event.sampled:
            return
        before = self.steps.get(event.optimizer)
        if before is None:
            return
        self.looked = True
        if all(count < before for count in _counts(event.optimizer)):  # mostly the first one is not
            self.found(
                expected=f"moments of {before:.0f} updates",
                observed="the optimizer's state was emptied in the middle of the training",
                where=event.where,
                update=event.update,
            )

    def on_step(self, event: Step) -> None:
        count = next(_counts(event.optimizer), None) if event.sampled else None
        if count is not None:
            self.steps[event.optimizer] = count

    def on_load(self, event: Load) -> None:
        if isinstance(event.into, Optimizer):
            self.steps.pop(event.into, None)


def _counts(optimizer: Optimizer) -> Iterator[float]:
    """The steps that its state counts, tensor by tensor, each read when it is asked for: it may lie on a device."""
    states = (optimizer.state.get(p, {}) for p in held_by(optimizer))
    return (float(state["step"]) for state in states if "step" in state)
