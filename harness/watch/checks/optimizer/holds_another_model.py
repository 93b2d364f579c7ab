from __future__ import annotations

from harness.watch.check import Check
from harness.watch.events import End
from harness.watch.facts.parameters import Parameters
from harness.watch.monitor import Monitor


class HoldsAnotherModel(Check):
    """The optimizer holds tensors of a model that is never called, and not of the one that is trained.

    ## Why is this a bug?
    An optimizer keeps the tensors that it was given. If the model is loaded again, copied or given a new head
    afterwards, the forward pass uses other tensors: they get gradients, and no step ever changes them.

    ## What to do
    Make the optimizer after the model is final (after from_pretrained, resizing, a new head, or moving to another
    class), from that model's parameters().

    ## When it is right
    An optimizer over several models, or over parts that are not called (an autoencoder's decoder when only the encoder
    is used), is not reported as long as some of what it holds gets gradients, and nothing that gets gradients is left
    out. Neither are embeddings that were resized after the optimizer was made.
    """

    needs = "optimizer step"
    in_windows = "first"
    formerly = ("identity::optimizer-holds-the-model",)
    explains = ("optimizer::missing-parameters",)

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.parameters = monitor.fact(Parameters)

    def on_end(self, event: End) -> None:
        for held in self.parameters.optimizers:
            self.looked |= held.stepped
            if self.parameters.holds_another_model(held):
                self.found(
                    expected="an optimizer that holds the parameters of the model that is trained",
                    observed=f"{len(held.foreign)} of its {len(held.all)} tensors belong to no model that was called, "
                    "and never get a gradient",
                    where=held.made,
                    update=1,
                )
