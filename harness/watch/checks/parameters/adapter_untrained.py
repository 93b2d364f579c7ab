from __future__ import annotations

from harness.watch.check import Check
from harness.watch.events import End
from harness.watch.facts.adapters import Adapters, names
from harness.watch.monitor import Monitor


class AdapterUntrained(Check):
    """An adapter that was added is never trained: no pass of the training goes through it.

    ## Why is this a bug?
    `add_adapter` does not make the new adapter the active one. The passes still go through the active adapter, which is
    trained further, and the new one stays as it was made: its output is zero, and the model with it is the model
    without it. It is saved and loaded like any other.

    ## What to do
    Call `model.set_adapter(NAME)` after `model.add_adapter(NAME, config)`, and make the optimizer after that.

    ## When it is right
    An adapter whose output is not zero, because it was trained before, is not reported. Neither is one that is called
    alongside the trained one, as a reference is, one that is trained later in the script, or one that was made before
    the trained one, such as the first of `get_peft_model`.

    ## References
    - https://huggingface.co/docs/peft/package_reference/peft_model#peft.PeftModel.add_adapter
    """

    status = "new"
    needs = "model with adapters"

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.adapters = monitor.fact(Adapters)

    def on_end(self, event: End) -> None:
        if not self.monitor.complete:
            return
        for number, made in self.adapters.made.items():
            active, held = self.adapters.active[number], self.adapters.held.get(number, set())
            self.looked = True
            latest = max((i for i, name in enumerate(made) if name in active), default=-1)
            instead = bool(held) and not held & active
            for name, tensors in self.adapters.idle[number].items():
                zero = {kind for kind, _ in tensors} - {kind for kind, tensor in tensors if bool(tensor.any())}
                if zero and (made.index(name) > latest or (instead and name in held)):
                    self.found(
                        expected=f"the adapter {name!r} active in passes of the training",
                        observed=f"the active one is {names(active)} in all of them; {name!r} was never trained: its "
                        f"{min(zero)} is still zero",
                        where=self.adapters.where,
                    )
