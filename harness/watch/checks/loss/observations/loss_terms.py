"""Terms of a loss: what a script adds up and then differentiates, each with the line that adds it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from harness.torch_objects import held_by_any, leaves_of
from harness.watch.events import Backward, BackwardBegins, Combined, Fact
from harness.watch.facts.parameters import Parameters
from harness.watch.recogniser import Recogniser

KEY = "harness: term"
"""Under which a node of a graph keeps what was added there: the node lives as long as the graph, and no longer."""

MOST_NODES = 256
"""Nodes of a sum of losses that are looked at. More than anybody adds up by hand."""

ALWAYS_NOTED = 8
"""Additions in each line that are noted whatever the update is: a term may come in late, as in a second task's loss."""

LINEAR = ("Add", "Sub", "Neg", "Mul", "Div", "Mean", "Sum", "ToCopy", "View", "Squeeze", "Reshape", "Alias")
"""Operations through which a term keeps its share of the gradient; a product or quotient only with a constant."""


MIN_VALUES = 4
"""Different values from which on a term is one that is computed anew for each batch."""


@dataclass(frozen=True)
class _Addition:
    """What a node of a graph keeps."""

    constant: torch.Tensor | float | None
    """The part that has no gradient, where there is one."""
    where: str | None
    turn: int
    """How often something was added in this line, counted from 1."""


class TermAdded(Fact):
    """Something was added up that is differentiated. ``where`` is the line of the addition."""

    needs = "sum of losses"
    in_windows = "first"
    constants: Collection[float] = ()
    """The values so far of the part without a gradient, the first few that differ; empty where both parts have one."""


class TermReaches(Fact):
    """What is differentiated has two terms with gradients, of which this is one. ``where`` they are added."""

    needs = "sum of losses"
    in_windows = "first"
    tensors: int
    """Number of tensors that it reaches."""
    untrained: str | None = None
    """What it reaches, where that is parameters that no optimizer holds, and the other term reaches one that is."""
    times: int = 0
    """How often such a term was added in this line."""


class LossTerms(Recogniser):
    """The terms of what the backward pass at hand differentiates."""

    makes = (TermAdded,)

    def begin(self) -> None:
        self._root: Any = None
        self._seen: Counter[str | None] = Counter()
        """Additions, by their lines."""
        self._noted = False
        """Whether any was noted since the backward pass before."""
        self._constants: dict[str | None, set[float]] = defaultdict(set)
        """Values of the parts without a gradient, by the lines that add them."""

    def on_combined(self, event: Combined) -> None:
        if event.sign in ("*", "/") or event.value.grad_fn is None:
            return
        self._seen[event.where] += 1
        if self._seen[event.where] > ALWAYS_NOTED and not self.monitor.is_sampled():
            return
        self._noted = True
        plain = [
            p
            for p in event.parts
            if isinstance(p, (float, np.floating)) or (torch.is_tensor(p) and not p.requires_grad)
        ]
        constant = None
        if plain and (not torch.is_tensor(plain[0]) or plain[0].numel() == 1):
            constant = plain[0] if torch.is_tensor(plain[0]) else float(plain[0])
        node: Any = event.value.grad_fn
        node.metadata[KEY] = _Addition(constant, event.where, self._seen[event.where])

    def on_backward_begins(self, event: BackwardBegins) -> None:
        looked_at = self._noted and not event.inside_step and event.root.numel() == 1
        self._root = event.root.grad_fn if looked_at else None
        self._noted = False
        for term, _ in self._additions():
            if term.constant is None:
                self.tell(TermAdded(where=term.where))
                continue
            constants = self._constants[term.where]
            if len(constants) <= MIN_VALUES:
                constants.add(float(term.constant))
            self.tell(TermAdded(constants=constants, where=term.where))

    def on_backward(self, event: Backward) -> None:
        self._root = None  # a node keeps what its graph reaches, and so the model

    def reaching(self) -> Iterator[tuple[str | None, list[list[torch.Tensor]]]]:
        """Line of each addition and what its terms reach, where both have a gradient."""
        for addition, node in self._additions():
            parts = [part for part, _ in node.next_functions]
            if addition.turn <= ALWAYS_NOTED and len(parts) == 2 and None not in parts:
                yield addition.where, [leaves_of(part) for part in parts]

    def _additions(self) -> Iterator[tuple[_Addition, Any]]:
        waiting, seen = [self._root], 0
        while waiting and seen < MOST_NODES:
            node = waiting.pop()
            if node is None or not type(node).__name__.startswith(LINEAR):
                continue
            seen += 1
            parts = [part for part, _ in node.next_functions]
            if type(node).__name__.startswith(("Mul", "Div")) and None not in parts:
                continue  # of two losses, or a mean of weights that are learned
            if KEY in node.metadata:
                yield node.metadata[KEY], node
            waiting += parts


class ReachOfTerms(Recogniser):
    makes = (TermReaches,)

    def begin(self) -> None:
        self._terms, self._parameters = self.fact(LossTerms), self.fact(Parameters)
        self._times: Counter[str | None] = Counter()

    def on_backward_begins(self, event: BackwardBegins) -> None:
        if not self._parameters.stepped:
            return
        held = held_by_any(self.monitor.optimizers)
        for where, terms in self._terms.reaching():
            trains = [any(id(leaf) in held for leaf in leaves) for leaves in terms]
            for leaves, does in zip(terms, trains, strict=True):
                untrained = leaves and not does and any(trains) and all(isinstance(x, nn.Parameter) for x in leaves)
                self._times[where] += bool(untrained)
                shown = self._shown(leaves) if untrained else None
                times = self._times[where]
                self.tell(TermReaches(tensors=len(leaves), untrained=shown, times=times, where=where))

    def _shown(self, leaves: Collection[torch.Tensor]) -> str:
        known = {id(leaf) for leaf in leaves} & self._parameters.names.keys()
        if known:
            return self._parameters.shown(known)
        return f"{len(leaves)} parameters of a module that is never called"
