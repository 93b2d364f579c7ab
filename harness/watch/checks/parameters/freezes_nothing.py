from __future__ import annotations

import difflib

from torch import nn

from harness.watch.check import HELD, Check, Found, Verdict
from harness.watch.facts.called_models import ModelCalled

MIN_NAME_SIMILARITY = 0.8
"""Similarity, as difflib measures it, from which on an attribute's name is a misspelt requires_grad."""


class FreezesNothing(Check):
    """An attempt to freeze parameters sets an attribute that has no effect, so they are still trained.

    ## Why is this a bug?
    `module.requires_grad = False` sets an attribute of the module, and `parameter.require_grad = False` sets one of the
    parameter that torch does not know. Neither raises an error, and everything that should stay as it was loaded
    changes.

    ## What to do
    Write `module.requires_grad_(False)`, or `parameter.requires_grad = False` for each parameter.

    ## When it is right
    Modules whose parameters are frozen in another way as well are not reported.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.requires_grad_
    """

    explains = ("parameters::modified-outside-optimizer",)

    def judge(self, fact: ModelCalled) -> Verdict:
        attribute = _freezing_nothing(fact.model)
        if attribute is None:
            return HELD
        return Found(
            expected="requires_grad_(False) on the module, or requires_grad = False on each parameter",
            observed=f"{attribute}, which freezes nothing",
        )


def _freezing_nothing(model: nn.Module) -> str | None:
    """The assignment of an attribute that nothing reads, by which somebody meant to freeze something."""
    for name, module in model.named_modules():
        if vars(module).get("requires_grad") is False and any(p.requires_grad for p in module.parameters()):
            return f"{name or 'the model'}.requires_grad = False"
    for name, parameter in model.named_parameters():
        misspelt = difflib.get_close_matches("requires_grad", list(vars(parameter)), n=1, cutoff=MIN_NAME_SIMILARITY)
        if misspelt and parameter.requires_grad:
            return f"{name}.{misspelt[0]} = {vars(parameter)[misspelt[0]]}"
    return None
