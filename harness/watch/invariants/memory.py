"""Memory: graphs and loss tensors are let go from update to update."""

from __future__ import annotations

from collections import deque
from typing import Any
from weakref import ref

from harness.watch.events_old import Backward
from harness.watch.observer import Invariant, Observer, Statement

KEPT, LATEST = 4, 2
"""So many graphs besides the latest ones may be alive, as a window of losses keeps them."""

DEPTH = 2
"""So many operations before the differentiated tensor."""


class _Sentinel:
    """Lives as long as the graph that it was put into."""


class Memory(Invariant):
    checks = (Statement("memory::graphs-are-freed", "No update keeps the graphs or loss tensors of those before."),)

    def __init__(self, observer: Observer) -> None:
        super().__init__(observer)
        self.graphs: deque[ref[_Sentinel]] = deque(maxlen=KEPT + LATEST + 1)

    def backward_begins(self, event: Backward) -> None:
        node = event.root.grad_fn
        if node is None:
            return
        for _ in range(DEPTH):  # the loss itself, before it was scaled
            node = next((each for each, _ in node.next_functions if each is not None), node)
        sentinel = _Sentinel()
        metadata: dict[Any, Any] = node.metadata  # type: ignore[assignment]
        metadata["harness"] = sentinel
        self.graphs.append(ref(sentinel))
        if len(self.graphs) == self.graphs.maxlen and all(graph() is not None for graph in self.graphs):
            self.found(
                "memory::graphs-are-freed",
                expected="a loss that is let go after its backward pass",
                observed=f"the losses of the last {len(self.graphs)} backward passes are all alive, with their graphs",
                hint="Add up loss.item(), or keep loss.detach().",
                where=event.where,
                update=self.observer.update,
            )
