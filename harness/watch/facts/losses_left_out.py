"""Losses left out: what the losses of a script reach, and whether any backward pass does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from weakref import ref

import torch

from harness.watch.bus import Recogniser
from harness.watch.events import Backward, End, Fact, LossCall
from harness.watch.facts.parameters import Parameters, leaves

if TYPE_CHECKING:
    from harness.watch.monitor import Monitor

SEARCHED = 4
"""Updates in which the graphs of losses are searched. Neither half nor double of it changes a verdict of the corpus."""


@dataclass(frozen=True, eq=False, kw_only=True)
class LossReaches(Fact):
    """A training is over of which a loss reaches parameters. ``where`` the loss was computed."""

    needs = "loss function"
    of_run = True
    function: str
    untrained: str | None = None
    """Parameters of an optimizer among them, which made steps, that never got a gradient."""


class LossesLeftOut(Recogniser):
    makes = (LossReaches,)

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self._parameters = monitor.fact(Parameters)
        self._reaching: dict[str | None, tuple[str, set[int]]] = {}
        """By the line of each loss: its function, and the ids of the tensors that it reaches."""
        self._waiting: dict[int, ref[torch.Tensor]] = {}
        """Those of them that no backward pass has given a gradient yet."""

    def on_loss(self, event: LossCall) -> None:
        if event.at.update <= SEARCHED:
            _, reached = self._reaching.setdefault(event.where, (event.function, set()))
            for leaf in leaves(event.value):
                if id(leaf) not in reached and leaf.grad is None:
                    self._waiting[id(leaf)] = ref(leaf)
                reached.add(id(leaf))

    def on_backward(self, event: Backward) -> None:
        if self._waiting:
            alive = [(each, tensor()) for each, tensor in self._waiting.items()]
            self._waiting = {each: ref(leaf) for each, leaf in alive if leaf is not None and leaf.grad is None}

    def on_end(self, event: End) -> None:
        for held in self._parameters.optimizers if event.at.complete else ():
            without = held.without_gradient & self._waiting.keys()
            for where, (function, reached) in self._reaching.items() if held.stepped else ():
                left = reached & without if held.reached else ()  # else no loss is differentiated: said elsewhere
                untrained = self._parameters.shown(left) if left else None
                self.tell(LossReaches(function=function, untrained=untrained, where=where))
