"""Graphs: which forwards and losses the backward passes go through, and whether their graphs are let go."""

from __future__ import annotations

from typing import Any
from weakref import ref

import torch

from harness.torch_objects import leaves
from harness.watch.bounded import LatestByKey
from harness.watch.events import Backward, BackwardBegins, End, Fact, Forward, LossCall
from harness.watch.facts.parameters import Parameters
from harness.watch.recogniser import Recogniser

ALIVE = 7
"""Graphs of the latest updates that must all be alive: by reasoning, a loop holds up to two of them in its variables,
and one that keeps a window of losses a few more."""

DEPTH = 32
"""Operations to go back from the differentiated tensor, past what may be kept: the loss that was divided, one of its
terms, the logits. By reasoning: what lies further back is in the model."""

SEARCHED = 4
"""Updates in which the graphs of losses are searched."""


class LatestGraphs(Fact):
    """A backward pass begins, after enough others. ``where`` it does."""

    needs = "long enough series of backward passes"
    in_windows = "all"
    all_alive: bool
    """Whether the graphs of the latest ones all are, this one's included."""


class _Sentinel:
    """Lives as long as the graph that it was put into."""


class Graphs(Recogniser):
    makes = (LatestGraphs,)

    def begin(self) -> None:
        self._graphs = LatestByKey[int, ref[_Sentinel]](ALIVE)
        """Update that a backward pass is towards to the latest of its graphs: those of one update may need each
        other's."""

    def on_backward_begins(self, event: BackwardBegins) -> None:
        node = event.root.grad_fn
        if node is None:
            return
        for _ in range(DEPTH):
            before = (each for each, _ in node.next_functions if each is not None and not hasattr(each, "variable"))
            node = next(before, node)  # a parameter's own node lives as long as the parameter
        sentinel = _Sentinel()
        metadata: dict[Any, Any] = node.metadata  # type: ignore[assignment]
        metadata["harness: graph"] = sentinel
        self._graphs[event.at.update] = ref(sentinel)
        if len(self._graphs) == ALIVE:
            alive = all(graph() is not None for graph in self._graphs.values())
            self.tell(LatestGraphs(all_alive=alive, where=event.where))


class ForwardsDifferentiated(Fact):
    """A backward pass went through forward passes, while a DataLoader's batch was at hand."""

    needs = "backward pass of a batch of a DataLoader"
    in_windows = "first"
    again: int = 0
    """Forwards of other batches that a backward pass had gone through before."""


class DifferentiatedForwards(Recogniser):
    makes = (ForwardsDifferentiated,)

    def begin(self) -> None:
        self._batch_of = LatestByKey[int, int]()
        """Number of a forward to the batch it was of, for the latest forwards."""
        self._differentiated: set[int] = set()
        """Forwards that a backward pass went through."""

    def on_forward(self, event: Forward) -> None:
        if event.gradients and event.batch is not None:
            self._batch_of[event.number] = event.batch.number
            self._differentiated.intersection_update(self._batch_of)

    def on_backward(self, event: Backward) -> None:
        if event.batch is None or not event.reached or event.inside_step:
            return
        batch = event.batch.number
        again = [n for n in event.reached & self._differentiated if self._batch_of.get(n, batch) != batch]
        self._differentiated |= event.reached
        self.tell(ForwardsDifferentiated(again=len(again), where=event.where))


class LossReaches(Fact):
    """A training is over of which a loss reaches parameters. ``where`` the loss was computed."""

    needs = "loss function"
    of_run = True
    function: str
    untrained: str | None = None
    """Parameters of an optimizer among them, which made steps, that never got a gradient."""


class LossesLeftOut(Recogniser):
    makes = (LossReaches,)

    def begin(self) -> None:
        self._parameters = self.fact(Parameters)
        self._reaching: dict[str | None, tuple[str, set[int]]] = {}
        """Line of each loss to its function, and the ids of the tensors that it reaches."""
        self._waiting: dict[int, ref[torch.Tensor]] = {}
        """Reached tensors that no backward pass has given a gradient yet."""

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
