from __future__ import annotations

from collections import Counter

from harness.torch_objects import held_by
from harness.watch.check import Check
from harness.watch.events import StepBegins


class DuplicateParameters(Check):
    """Tensors are in the optimizer more than once, and each step updates them as often.

    ## Why is this a bug?
    torch rejects a tensor that is in two groups, but only warns about one that is in the same group twice. Each step
    updates it twice: for this part of the model, the learning rate is about twice the one that was set.

    ## What to do
    Make the groups without an overlap.

    ## When it is right
    Tied weights, the same tensor under two names, are not reported if they come from `model.parameters()`, which yields
    them once. A list that is put together from parts of the model has to leave out the second one.

    ## References
    - https://docs.pytorch.org/docs/stable/optim.html
    """

    needs = "optimizer step"
    in_windows = "first"
    formerly = ("groups::no-duplicates",)

    def on_step_begins(self, event: StepBegins) -> None:
        if event.number != 1:
            return
        self.looked = True
        twice = sum(count > 1 for count in Counter(id(p) for p in held_by(event.optimizer)).values())
        if twice:
            self.found(
                expected="each tensor once",
                observed=f"{twice} tensors are in the optimizer more than once, and are updated as often",
                where=self.monitor.optimizers[event.optimizer].made or event.where,
                update=1,
            )
