from __future__ import annotations

from harness.watch.check import Check
from harness.watch.events import End
from harness.watch.facts.parameters import ModelTensors, Parameters
from harness.watch.monitor import Monitor

SHOWN = 3
"""Names that are shown."""


class MissingParameters(Check):
    """Parameters get gradients, and no optimizer holds them.

    ## Why is this a bug?
    They are meant to be trained, and stay as they were initialised. A head that the optimizer does not know is random
    to the end: what comes before it has to learn around it.

    ## What to do
    Give the optimizer model.parameters(), or freeze what is not to be trained with requires_grad_(False).

    Modules in a plain list or dict, and tensors that are no attributes of a module, are not among `parameters()`: keep
    them in nn.ModuleList, nn.ModuleDict or as attributes.

    ## When it is right
    Training the head alone while the backbone gets gradients that nobody uses is a note, no finding. What an optimizer
    gets later, by `add_param_group` or as another optimizer, is not reported either.
    """

    id = "optimizer::missing-parameters"
    needs = "optimizer step"
    formerly = ("identity::nothing-forgotten",)
    explains = ("schedule::lr-zero",)

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.parameters = monitor.fact(Parameters)

    def on_end(self, event: End) -> None:
        seen = self.parameters
        self.looked = seen.stepped and bool(seen.models)
        if seen.loose is not None and seen.stepped:
            self.found(
                expected="every parameter registered in a module, and in the optimizer",
                observed=f"{seen.loose.number} parameters, the first of shape {seen.loose.shape}, get gradients, "
                "and are in neither",
                where=seen.loose.where,
                update=1,
                hint="Keep modules in nn.ModuleList or nn.ModuleDict, and parameters as attributes of a module.",
            )
        if not seen.stepped and not self.monitor.complete:
            return  # it ended before its first update
        stale = any(held.stepped and held.all and not held.reached for held in seen.optimizers)
        for model in seen.models:
            if model.forgotten and not (stale and not model.held):
                self._forgotten(model)

    def _forgotten(self, model: ModelTensors) -> None:
        seen, forgotten = self.parameters, model.forgotten
        # A head alone may be trained on purpose; what was thawed later was meant to be trained.
        thawed = forgotten - set(model.order)
        if not thawed and model.order[-1] not in forgotten and len(forgotten) > len(model.order) / 2:
            if not any(map(seen.holds_another_model, seen.optimizers)):
                self.monitor.note(
                    f"{len(forgotten)} of {len(model.order)} trainable tensors of {model.name} get gradients and are "
                    "in no optimizer; if that is meant, requires_grad_(False) says so and saves their backward pass"
                )
            return
        names = [name for name in model.order if name in forgotten] or sorted(forgotten)
        more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
        self.found(
            expected="every trainable parameter of the model in an optimizer",
            observed=f"{', '.join(names[:SHOWN])}{more} of {model.name} get gradients and are in none",
            where=next((held.made for held in seen.optimizers if held.stepped), None),
            update=1,
        )
