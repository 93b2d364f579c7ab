"""Terms of a loss: what a script adds up and then differentiates, each with the line that adds it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from harness.watch.bus import Recogniser
from harness.watch.events import Backward, BackwardBegins, Combined
from harness.watch.facts.parameters import leaves_of

if TYPE_CHECKING:
    from harness.watch.monitor import Monitor

KEY = "harness: term"
"""Under which a node of a graph keeps what was added there: the node lives as long as the graph, and no longer."""

MOST_NODES = 256
"""Nodes of a sum of losses that are looked at. More than anybody adds up by hand. Neither half nor double of it changes
a verdict of the corpus."""

ALWAYS_NOTED = 8
"""Additions in each line that are noted whatever the update is: a term may come in late, as in a second task's loss."""

LINEAR = ("Add", "Sub", "Neg", "Mul", "Div", "Mean", "Sum", "ToCopy", "View", "Squeeze", "Reshape", "Alias")
"""Operations through which a term keeps its share of the gradient; a product or quotient only with a constant."""


@dataclass(frozen=True)
class _Addition:
    """What a node of a graph keeps."""

    constant: torch.Tensor | float | None
    """The part that has no gradient, where there is one."""
    where: str | None
    turn: int
    """How often something was added in this line, counted from 1."""


@dataclass(frozen=True)
class Term:
    """One of the two parts of an addition."""

    where: str | None
    constant: float | None
    """What a part without a gradient is; None for one that has a gradient."""
    leaves: tuple[torch.Tensor, ...] = ()
    """The tensors that a part with a gradient reaches, where that was looked for."""


class LossTerms(Recogniser):
    """The terms of what the backward pass at hand differentiates."""

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self._root: Any = None
        self._seen: Counter[str | None] = Counter()
        """Additions, by their lines."""
        self._noted = False
        """Whether any was noted since the backward pass before."""

    def on_combined(self, event: Combined) -> None:
        if event.sign == "*" or event.value.grad_fn is None:
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

    def on_backward(self, event: Backward) -> None:
        self._root = None  # a node keeps what its graph reaches, and so the model

    @property
    def any(self) -> bool:
        """Whether something is added up in it."""
        return next(self._additions(), None) is not None

    def constants(self) -> list[Term]:
        """Those that have no gradient, of the backward pass that begins."""
        return [Term(each.where, float(each.constant)) for each, _ in self._additions() if each.constant is not None]

    def reaching(self) -> Iterator[list[Term]]:
        """Of each addition both terms, where both have a gradient, with the tensors that they reach."""
        for each, node in self._additions():
            parts = [part for part, _ in node.next_functions]
            if each.turn <= ALWAYS_NOTED and len(parts) == 2 and None not in parts:
                yield [Term(each.where, None, tuple(leaves_of(part))) for part in parts]

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
