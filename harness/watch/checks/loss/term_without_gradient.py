from __future__ import annotations

from collections import defaultdict

from harness.watch.check import Check
from harness.watch.events import BackwardBegins
from harness.watch.facts.loss_terms import LossTerms
from harness.watch.monitor import Monitor

MIN_VALUES = 4
"""Different values from which on a term is one that is computed anew for each batch. Neither half nor double of it
changes a verdict of the corpus."""


class TermWithoutGradient(Check):
    """A term of the loss is a constant for the backward pass: it changes what is printed and trains nothing.

    ## Why is this a bug?
    The derivative of a sum is the sum of the derivatives, and that of a tensor without a graph is 0. A penalty or an
    auxiliary loss that was computed under `no_grad()`, from detached tensors, from frozen weights, or from
    `autograd.grad` without `create_graph=True`, is logged, moves the loss curve, and leaves every weight as it would be
    without it.

    ## What to do
    Compute the term from tensors that have a graph: no `no_grad()`, `detach()`, `.data`, `.item()` or numpy on its way;
    give `autograd.grad` `create_graph=True` for a penalty on gradients.

    ## When it is right
    A number that is the same in every batch, such as a normalising constant, is not reported. Neither is a constant
    within a function that is not linear, such as the reference's log-probability in DPO. Ignore this warning for a term
    that is added only for the record, or for one on a part that is frozen for a while.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.autograd.grad.html
    """

    status = "new"
    needs = "sum of losses"
    in_windows = "first"
    severity = "warning"

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.terms = monitor.fact(LossTerms)
        self.values: dict[str | None, set[float]] = defaultdict(set)
        """Of the terms without a gradient, by the lines that add them."""

    def on_backward_begins(self, event: BackwardBegins) -> None:
        self.looked |= self.terms.any
        for term in self.terms.constants():
            values = self.values[term.where]
            assert term.constant is not None
            values.add(term.constant)
            if len(values) == MIN_VALUES:
                self.found(
                    expected="a gradient for each term of the loss that is computed from the batch or the weights",
                    observed=f"one that is added here has none: {_listed(values)} in {MIN_VALUES} batches",
                    where=term.where,
                    update=self.monitor.update,
                )


def _listed(values: set[float]) -> str:
    return ", ".join(f"{value:.3g}" for value in sorted(values))
