from __future__ import annotations

from torch import nn

from harness.watch.check import Check
from harness.watch.events import Load

MIN_SHARE = 0.5
"""Smallest share of tensors that have a place in the module, of the state's or the module's own, from which on a state
is meant for it. Half or double of it changes verdicts (docs/detection.md)."""


class StateNotLoaded(Check):
    """A state is loaded with `strict=False`, and most of it has no place in the model.

    ## Why is this a bug?
    `load_state_dict(..., strict=False)` drops every name that does not fit, and if none fits, the module keeps the
    weights that it had. It says so only in its return value.

    ## What to do
    Compare the names (a prefix such as module. or model.), and load with strict=True.

    ## When it is right
    Loading a part of a state with strict=False is not reported as long as half of its tensors have a place, or half of
    the module's own tensors are in it.

    ## References
    - https://docs.pytorch.org/tutorials/beginner/saving_loading_models.html
    """

    needs = "state loaded into a model"
    formerly = ("identity::state-was-loaded",)
    explains = ("saved::resumed-incompletely", "saved::not-what-was-trained", "weights::left-random")

    def on_load(self, event: Load) -> None:
        if not isinstance(event.into, nn.Module) or not event.state:
            return
        self.looked = True
        fitting, own = len(event.state) - len(event.unexpected), _names(event.into)
        if not event.strict and fitting < MIN_SHARE * min(len(event.state), len(own)):
            self.found(
                expected="a state whose names are the module's",
                observed=f"{fitting} of its {len(event.state)} tensors have a place in {type(event.into).__name__}; "
                "strict=False lets the others go",
                where=event.where,
            )


def _names(module: nn.Module) -> set[str]:
    """Of its parameters and buffers."""
    return {name for name, _ in (*module.named_parameters(), *module.named_buffers())}
