"""Graphs: which of those that the latest backward passes went through are still alive."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import ref

from harness.watch.bus import Recogniser
from harness.watch.events import BackwardBegins, Fact

if TYPE_CHECKING:
    from harness.watch.monitor import Monitor

ALIVE = 7
"""Graphs of the latest backward passes that must all be alive: by reasoning, a loop holds up to two of them in its
variables, and one that keeps a window of losses a few more."""

DEPTH = 32
"""Operations to go back from the differentiated tensor, past what may be kept: the loss that was divided, one of its
terms, the logits. By reasoning: what lies further back is in the model."""


@dataclass(frozen=True, eq=False, kw_only=True)
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

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self._graphs: deque[ref[_Sentinel]] = deque(maxlen=ALIVE)

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
        self._graphs.append(ref(sentinel))
        if len(self._graphs) == ALIVE:
            self.tell(LatestGraphs(all_alive=all(graph() is not None for graph in self._graphs), where=event.where))
