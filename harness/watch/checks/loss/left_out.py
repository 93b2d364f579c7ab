from __future__ import annotations

from weakref import ref

import torch

from harness.watch.check import Check
from harness.watch.events import Backward, End, LossCall
from harness.watch.facts.parameters import Parameters, leaves
from harness.watch.monitor import Monitor

SEARCHED = 4
"""Updates in which the graphs of losses are searched. Neither half nor double of it changes a verdict of the corpus."""


class LeftOut(Check):
    """A loss is computed and never differentiated, and it is the only one that reaches some of the parameters.

    ## Why is this a bug?
    Each of several losses trains what it reaches only if it is part of what `backward()` is called on. A head whose
    loss is computed, logged and left out of the sum stays as it was initialised.

    ## What to do
    Add the loss to the one that is differentiated.

    ## When it is right
    A loss that is computed only for monitoring, whose parameters another loss trains, is not reported. Neither are
    parameters that get a gradient at any time, or that no optimizer holds.
    """

    status = "new"
    needs = "loss function"
    explains = ("gradients::cut-off",)

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.parameters = monitor.fact(Parameters)
        self.reaching: dict[str | None, tuple[str, set[int]]] = {}
        """By the line of each loss: its function, and the ids of the tensors that it reaches."""
        self.waiting: dict[int, ref[torch.Tensor]] = {}
        """Those of them that no backward pass has given a gradient yet."""

    def on_loss(self, event: LossCall) -> None:
        if self.monitor.update <= SEARCHED:
            _, reached = self.reaching.setdefault(event.where, (event.function, set()))
            for leaf in leaves(event.value):
                if id(leaf) not in reached and leaf.grad is None:
                    self.waiting[id(leaf)] = ref(leaf)
                reached.add(id(leaf))

    def on_backward(self, event: Backward) -> None:
        if self.waiting:
            alive = [(each, tensor()) for each, tensor in self.waiting.items()]
            self.waiting = {each: ref(leaf) for each, leaf in alive if leaf is not None and leaf.grad is None}

    def on_end(self, event: End) -> None:
        if not self.monitor.complete:
            return
        for held in self.parameters.optimizers:
            self.looked |= held.stepped and bool(self.reaching)
            without = held.without_gradient & self.waiting.keys()
            if not held.stepped or not held.reached:
                continue  # that no loss is differentiated is said elsewhere
            for where, (function, reached) in self.reaching.items():
                if left := reached & without:
                    self.found(
                        expected="each loss that alone reaches a parameter among those that are differentiated",
                        observed=f"{function} here reaches {self.parameters.shown(left)}, and no backward pass does: "
                        "they never get a gradient",
                        where=where,
                    )
