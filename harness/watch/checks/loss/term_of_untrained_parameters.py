from __future__ import annotations

from collections import Counter

from torch import nn

from harness.torch_objects import held_by_any
from harness.watch.check import Check
from harness.watch.events import BackwardBegins
from harness.watch.facts.loss_terms import LossTerms
from harness.watch.facts.parameters import Parameters
from harness.watch.monitor import Monitor

MIN_TIMES = 2
"""Backward passes in which it must be so: every optimizer has been made by then. Neither half nor double of it changes
a verdict of the corpus."""


class TermOfUntrainedParameters(Check):
    """A term of the loss reaches only parameters that no optimizer holds: it trains nothing.

    ## Why is this a bug?
    A penalty on the weights of a copy, of the model before it was wrapped, or of a model that was made again has
    gradients, but they end up in tensors that no optimizer steps. The penalty is logged and does nothing for the model
    in training.

    ## What to do
    Compute the term from the model that the optimizer was given.

    ## When it is right
    A term that reaches trained parameters among others is not reported, nor is one that reaches only an input.

    ## References
    - https://docs.pytorch.org/docs/stable/optim.html
    """

    status = "new"
    needs = "sum of losses"
    in_windows = "first"
    explains = ("optimizer::missing-parameters", "loss::term-always-zero")

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.terms, self.parameters = monitor.fact(LossTerms), monitor.fact(Parameters)
        self.times: Counter[str | None] = Counter()

    def on_backward_begins(self, event: BackwardBegins) -> None:
        if not self.parameters.stepped:
            return
        held = held_by_any(self.monitor.optimizers)
        for terms in self.terms.reaching():
            self.looked = True
            trains = [any(id(leaf) in held for leaf in term.leaves) for term in terms]
            for term, does in zip(terms, trains, strict=True):
                if does or not any(trains) or not term.leaves:
                    continue
                if not all(isinstance(leaf, nn.Parameter) for leaf in term.leaves):
                    continue
                self.times[term.where] += 1
                if self.times[term.where] == MIN_TIMES:
                    self.found(
                        expected="a term that reaches a parameter of an optimizer",
                        observed=f"one that is added here reaches {self._shown(term.leaves)}, and no optimizer holds "
                        f"{'it' if len(term.leaves) == 1 else 'any of them'}",
                        where=term.where,
                        update=self.monitor.update,
                    )

    def _shown(self, leaves: tuple[object, ...]) -> str:
        known = {id(leaf) for leaf in leaves} & self.parameters.names.keys()
        if known:
            return self.parameters.shown(known)
        return f"{len(leaves)} parameters of a module that is never called"
