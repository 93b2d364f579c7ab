from __future__ import annotations

from harness.watch.check import Check
from harness.watch.events import BackwardBegins, Clip, End
from harness.watch.facts.gradient_ledger import GradientLedger, is_zero
from harness.watch.facts.parameters import Parameters, names
from harness.watch.monitor import Monitor


class ClippedWithUnused(Check):
    """Gradients that no optimizer uses, and that nothing clears, are clipped together with those of the optimizer.

    ## Why is this a bug?
    The gradients of parameters that no optimizer holds pile up, since `optimizer.zero_grad()` does not know them. Their
    norm grows with each update, and clipping scales the others down by it: every update is smaller than the one before.

    ## What to do
    Give the optimizer model.parameters(); or freeze what is not to be trained with requires_grad_(False).

    Clip the parameters that the optimizer holds.

    ## When it is right
    Clipping what the optimizer holds is right, and so is clipping what `model.zero_grad()` clears in each update.
    """

    id = "gradients::clipped-with-unused"
    needs = "clipping of gradients"
    in_windows = "first"
    formerly = ("optimizer::missing-parameters", "identity::nothing-forgotten")

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
        self.looked = True
        given = self.piled_up.intersection(map(id, event.parameters)) if self.piled_up else set()
        for model in self.parameters.models if given else ():
            unheld = {id(model.tensors[name]()) for name in model.unheld if name in model.forgotten}
            if unheld & given:
                self.clipped[model.name] = event.where

    def on_end(self, event: End) -> None:
        seen = self.parameters
        for model in seen.left_out() if seen.stepped else ():
            if model.name in self.clipped and seen.may_be_meant(model):
                forgotten = [name for name in model.order if name in model.forgotten]
                self.found(
                    expected="clipping of the gradients that the optimizer uses",
                    observed=f"{names(forgotten)} of {model.name} are in no optimizer, nothing clears their gradients, "
                    "and they are clipped together with the others: their growing norm makes every update smaller",
                    where=self.clipped[model.name],
                    update=1,
                )
