from __future__ import annotations

from torch import nn

from harness.watch.check import Check
from harness.watch.events import StepBegins
from harness.watch.facts.parameters import Parameters
from harness.watch.monitor import Monitor


class DecayNotExempt(Check):
    """Some parameters are exempt from weight decay, and biases or normalisation weights are not among them.

    ## Why is this a bug?
    The usual exemption goes by name, and a name that matches nothing exempts nothing: `gamma` and `beta` were the names
    in TensorFlow's BERT, and in other architectures the layers are not called `LayerNorm`. Parameters that were meant
    to be left alone are pulled towards 0, including normalisation weights, which belong near 1.

    ## What to do
    Choose them by their module (nn.LayerNorm) and by the name bias; in other architectures normalisation has other
    names. Right if you meant to decay them.

    ## When it is right
    An optimizer that decays everything, or nothing, is not reported, nor is one that exempts whole modules such as a
    head. Ignore the warning if you meant to decay biases or normalisation weights.

    ## References
    - https://github.com/huggingface/transformers/issues/8396
    - https://github.com/huggingface/transformers/issues/42769
    """

    needs = "parameters exempt from weight decay"
    in_windows = "first"
    formerly = ("groups::decay-exempt-as-meant",)
    severity = "warning"

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.parameters = monitor.fact(Parameters)

    def on_step_begins(self, event: StepBegins) -> None:
        if event.number != 1:
            return
        groups = event.optimizer.param_groups
        decays = {float(group.get("weight_decay") or 0.0) for group in groups}
        exempt = {id(p) for group in groups if not group.get("weight_decay") for p in group["params"]}
        if 0.0 not in decays or len(decays) < 2 or self._exempts_whole_modules(exempt):
            return  # nobody meant to exempt biases and normalisation
        self.looked = True
        names = self._biases_and_norms({id(p) for g in groups if g.get("weight_decay") for p in g["params"]})
        if names:
            self.found(
                expected="biases and normalisation weights in the group without weight decay",
                observed=names[0] + (f" and {len(names) - 1} more are decayed" if names[1:] else " is decayed"),
                where=self.monitor.optimizers[event.optimizer].made or event.where,
                update=1,
            )

    def _biases_and_norms(self, among: set[int]) -> list[str]:
        """The names of those of ``among``."""
        return [
            f"{name}.{own}".lstrip(".")
            for model in self.parameters.called
            for name, module in model.named_modules()
            for own, p in module.named_parameters(recurse=False)
            if id(p) in among and (own == "bias" or _is_norm(module))
        ]

    def _exempts_whole_modules(self, exempt: set[int]) -> bool:
        """Whether whole modules are exempt, such as a head, and not kinds of parameters."""
        whole = False
        for module in (each for model in self.parameters.called for each in model.modules()):
            own = {id(p) for p in module.parameters(recurse=False)}
            if own & exempt and own - exempt:
                return False
            whole = whole or bool(own & exempt and not _is_norm(module))
        return whole


def _is_norm(module: nn.Module) -> bool:
    return "norm" in type(module).__name__.lower()
