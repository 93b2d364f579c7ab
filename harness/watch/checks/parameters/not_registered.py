from __future__ import annotations

from harness.watch.check import Check
from harness.watch.events import End
from harness.watch.facts.parameters import Parameters
from harness.watch.monitor import Monitor


class NotRegistered(Check):
    """Parameters get gradients, and are neither in a module nor in an optimizer.

    ## Why is this a bug?
    Modules in a plain list or dict, and tensors that are not attributes of a module, are not among `parameters()`: the
    optimizer does not get them, `state_dict()` does not save them, and they stay as they were initialised.

    ## What to do
    Keep modules in `nn.ModuleList` or `nn.ModuleDict`, and parameters as attributes of a module.

    ## When it is right
    Tensors that the script updates by hand are not reported, nor are tensors that a model's input is computed from.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.ModuleList.html
    """

    needs = "optimizer step"
    in_windows = "first"
    formerly = ("optimizer::missing-parameters", "identity::nothing-forgotten")
    explains = ("schedule::lr-zero",)

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.parameters = monitor.fact(Parameters)

    def on_end(self, event: End) -> None:
        seen = self.parameters
        self.looked = seen.stepped
        if seen.stepped and seen.loose is not None and not seen.loose.by_hand:
            shapes = seen.loose.shapes
            several = f"{len(shapes)} parameters, the first of shape {shapes[0]}, get gradients and are"
            self.found(
                expected="every parameter registered in a module, and in the optimizer",
                observed=f"{several if shapes[1:] else f'a parameter of shape {shapes[0]} gets gradients and is'} "
                "in neither",
                where=seen.loose.where,
                update=1,
            )
