from __future__ import annotations

from harness.watch.check import Check
from harness.watch.events import End
from harness.watch.facts.parameters import ModelTensors, Parameters, names
from harness.watch.monitor import Monitor


class MissingParameters(Check):
    """Parameters get gradients, and no optimizer holds them.

    ## Why is this a bug?
    They are meant to be trained, but stay as they were initialised. A head that the optimizer does not know stays
    random to the end: what comes before it has to learn around it.

    ## What to do
    Give the optimizer model.parameters(), or freeze what is not to be trained with requires_grad_(False). What is
    unfrozen later comes to it with optimizer.add_param_group.

    ## When it is right
    Training the head alone while the backbone gets gradients that nobody uses is a note, not a finding. It is also a
    note if only vectors, such as all biases, are trained in addition to the head, or if the script searches for a
    model's input (an adversarial image, a latent code) and trains nothing in the model. Parameters that come to an
    optimizer later, through `add_param_group` or with another optimizer, are not reported either. Neither are those
    that the script updates by hand, or with a class that is not a torch optimizer.
    """

    needs = "optimizer step"
    in_windows = "first"
    formerly = ("identity::nothing-forgotten",)
    explains = ("schedule::lr-zero",)

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.parameters = monitor.fact(Parameters)

    def on_end(self, event: End) -> None:
        seen = self.parameters
        self.looked = seen.stepped and bool(seen.models)
        if not seen.stepped:
            return  # it has no optimizer of torch, or ended before its first update
        for model in seen.left_out():
            if not seen.may_be_meant(model):
                self._forgotten(model)
            elif not any(map(seen.holds_another_model, seen.optimizers)):
                self.monitor.note(
                    f"{len(model.forgotten)} of {len(model.order)} trainable tensors of {model.name} get gradients and "
                    "are in no optimizer; if that is meant, requires_grad_(False) says so and saves their backward pass"
                )

    def _forgotten(self, model: ModelTensors) -> None:
        forgotten = model.forgotten
        ordered = [name for name in model.order if name in forgotten] or sorted(forgotten)
        self.found(
            expected="every trainable parameter of the model in an optimizer",
            observed=f"{names(ordered)} of {model.name} get gradients and are in none",
            where=next((held.made for held in self.parameters.optimizers if held.stepped), None),
            update=1,
        )
