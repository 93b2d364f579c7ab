from __future__ import annotations

from harness.watch.check import Check
from harness.watch.events import BackwardBegins, Clip, End
from harness.watch.facts.gradient_ledger import GradientLedger, is_zero
from harness.watch.facts.parameters import ModelTensors, Parameters, names
from harness.watch.monitor import Monitor


class MissingParameters(Check):
    """Parameters get gradients, and no optimizer holds them.

    ## Why is this a bug?
    They are meant to be trained, and stay as they were initialised. A head that the optimizer does not know is random
    to the end: what comes before it has to learn around it.

    ## What to do
    Give the optimizer model.parameters(), or freeze what is not to be trained with requires_grad_(False). What is
    unfrozen later comes to it with optimizer.add_param_group.

    Modules in a plain list or dict, and tensors that are no attributes of a module, are not among `parameters()`: keep
    them in nn.ModuleList, nn.ModuleDict or as attributes.

    ## When it is right
    Training the head alone while the backbone gets gradients that nobody uses is a note, no finding, unless these
    gradients are never cleared and are clipped together with the head's, whose updates they make smaller. It is a note,
    too, where only vectors are trained besides the head, such as all biases, and where the script searches for a
    model's input (an adversarial image, a latent code) and trains nothing of the model. What an optimizer gets later,
    by `add_param_group` or as another optimizer, is not reported either; nor is what the script updates by hand, or
    with a class that is no optimizer of torch.
    """

    id = "optimizer::missing-parameters"
    needs = "optimizer step"
    in_windows = "first"
    formerly = ("identity::nothing-forgotten",)
    explains = ("schedule::lr-zero",)

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.parameters = monitor.fact(Parameters)
        self.gradients = monitor.fact(GradientLedger)
        self.piled_up: set[int] = set()
        """Ids of tensors whose gradients were still there when those of an optimizer had been cleared."""
        self.clipped: dict[str, str | None] = {}
        """Models with such tensors, and where they are clipped together with those of an optimizer."""

    def on_backward_begins(self, event: BackwardBegins) -> None:
        if self.gradients.cleared and not event.inside_step:
            for model in self.parameters.models:
                tensors = [model.tensors[name]() for name in model.unheld]
                self.piled_up |= {id(t) for t in tensors if t is not None and not is_zero(t.grad)}

    def on_clip(self, event: Clip) -> None:
        given = self.piled_up.intersection(map(id, event.parameters)) if self.piled_up else set()
        for model in self.parameters.models if given else ():
            unheld = {id(model.tensors[name]()) for name in model.unheld if name in model.forgotten}
            if unheld & given:
                self.clipped[model.name] = event.where

    def on_end(self, event: End) -> None:
        seen = self.parameters
        self.looked = seen.stepped and bool(seen.models)
        if not seen.stepped:
            return  # it has no optimizer of torch, or ended before its first update
        if seen.loose is not None and not seen.loose.by_hand:
            shapes = seen.loose.shapes
            several = f"{len(shapes)} parameters, the first of shape {shapes[0]}, get gradients and are"
            self.found(
                expected="every parameter registered in a module, and in the optimizer",
                observed=f"{several if shapes[1:] else f'a parameter of shape {shapes[0]} gets gradients and is'} "
                "in neither",
                where=seen.loose.where,
                update=1,
                hint="Keep modules in nn.ModuleList or nn.ModuleDict, and parameters as attributes of a module.",
            )
        stale = any(held.stepped and held.all and not held.reached for held in seen.optimizers)
        for model in seen.models:
            if model.forgotten and not model.by_hand and not (stale and not model.held):
                self._forgotten(model)

    def _forgotten(self, model: ModelTensors) -> None:
        seen, forgotten = self.parameters, model.forgotten
        if (seen.finds_inputs and not model.held) or self._trains_a_part(model):
            if model.name in self.clipped:
                self._piled_up(model)
            elif not any(map(seen.holds_another_model, seen.optimizers)):
                self.monitor.note(
                    f"{len(forgotten)} of {len(model.order)} trainable tensors of {model.name} get gradients and are "
                    "in no optimizer; if that is meant, requires_grad_(False) says so and saves their backward pass"
                )
            return
        ordered = [name for name in model.order if name in forgotten] or sorted(forgotten)
        self.found(
            expected="every trainable parameter of the model in an optimizer",
            observed=f"{names(ordered)} of {model.name} get gradients and are in none",
            where=next((held.made for held in seen.optimizers if held.stepped), None),
            update=1,
        )

    def _trains_a_part(self, model: ModelTensors) -> bool:
        """Whether a head alone may be trained on purpose, or besides it only vectors, as the biases of all modules.

        What was thawed later was meant to be trained.
        """
        forgotten, last = model.forgotten, model.order[-1]
        if forgotten - set(model.order) or last in forgotten:
            return False
        head = last.rpartition(".")[0]
        others = [name for name in model.order if name not in forgotten and name.rpartition(".")[0] != head]
        tensors = [model.tensors[name]() for name in others]
        only_vectors = bool(others) and all(each is not None and each.dim() <= 1 for each in tensors)
        return only_vectors or len(forgotten) > len(model.order) / 2

    def _piled_up(self, model: ModelTensors) -> None:
        forgotten = [name for name in model.order if name in model.forgotten]
        self.found(
            expected="clipping of the gradients that the optimizer uses",
            observed=f"{names(forgotten)} of {model.name} are in no optimizer, nothing clears their gradients, and "
            "they are clipped together with the others: their growing norm makes every update smaller",
            where=self.clipped[model.name],
            update=1,
            hint="Give the optimizer model.parameters(); or freeze what is not to be trained with "
            "requires_grad_(False).",
        )
