from __future__ import annotations

from harness.watch.check import HELD, Check, Found, Verdict
from harness.watch.facts.parameters import LooseTensors


class NotRegistered(Check):
    """Parameters get gradients but are neither in a module nor in an optimizer.

    ## Why is this a bug?
    Modules in a plain list or dict, and tensors that are not attributes of a module, are not among `parameters()`: the
    optimizer does not get them, `state_dict()` does not save them, and they stay as they were initialised.

    ## What to do
    Put modules into `nn.ModuleList` or `nn.ModuleDict`, and parameters into attributes of a module.

    ## When it is right
    Tensors that the script updates by hand are not reported, nor are tensors that a model's input is computed from.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.ModuleList.html
    """

    explains = ("schedule::lr-zero",)

    def judge(self, fact: LooseTensors) -> Verdict:
        if not fact.shapes:
            return HELD
        first, several = fact.shapes[0], len(fact.shapes) > 1
        many = f"{len(fact.shapes)} parameters, the first of shape {first}, get gradients but are"
        return Found(
            expected="every parameter registered in a module and in an optimizer",
            observed=f"{many if several else f'a parameter of shape {first} gets gradients but is'} in no module and "
            "no optimizer",
            update=1,
        )
