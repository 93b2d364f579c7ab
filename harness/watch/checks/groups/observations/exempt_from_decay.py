"""Parameters exempt from weight decay: whether all of their kind are."""

from __future__ import annotations

from collections.abc import Sequence

from torch import nn

from harness.watch.events import Fact, StepBegins
from harness.watch.facts.parameters import Parameters
from harness.watch.recogniser import Recogniser


class DecayExempted(Fact):
    """An optimizer that makes its first step exempts kinds of parameters from decay. ``where`` is where it was made."""

    needs = "parameters exempt from weight decay"
    in_windows = "first"
    decayed: Sequence[str] = ()
    """Names of the biases and normalisation weights that it decays."""


class ExemptFromDecay(Recogniser):
    makes = (DecayExempted,)

    def begin(self) -> None:
        self._parameters = self.fact(Parameters)

    def on_step_begins(self, event: StepBegins) -> None:
        if event.number != 1:
            return
        groups = event.optimizer.param_groups
        decays = {float(group.get("weight_decay") or 0.0) for group in groups}
        exempt = {id(p) for group in groups if not group.get("weight_decay") for p in group["params"]}
        if 0.0 not in decays or len(decays) < 2 or self._exempts_whole_modules(exempt):
            return  # nobody meant to exempt biases and normalisation
        decayed = self._biases_and_norms({id(p) for g in groups if g.get("weight_decay") for p in g["params"]})
        self.tell(DecayExempted(decayed=decayed, where=event.made))

    def _biases_and_norms(self, among: set[int]) -> list[str]:
        """The names of those of ``among``."""
        return [
            f"{name}.{own}".lstrip(".")
            for model in self._parameters.called
            for name, module in model.named_modules()
            for own, p in module.named_parameters(recurse=False)
            if id(p) in among and (own == "bias" or _is_norm(module))
        ]

    def _exempts_whole_modules(self, exempt: set[int]) -> bool:
        """Whether whole modules are exempt, such as a head, and not kinds of parameters."""
        whole = False
        for module in (each for model in self._parameters.called for each in model.modules()):
            own = {id(p) for p in module.parameters(recurse=False)}
            if own & exempt and own - exempt:
                return False
            whole = whole or bool(own & exempt and not _is_norm(module))
        return whole


def _is_norm(module: nn.Module) -> bool:
    return "norm" in type(module).__name__.lower()
