from __future__ import annotations

from collections import deque
from typing import Any
from weakref import ref

from harness.watch.check import Check
from harness.watch.events import BackwardBegins
from harness.watch.monitor import Monitor

ALIVE = 7
"""Graphs of the latest backward passes that must all be alive: by reasoning, a loop holds up to two of them in its
variables, and one that keeps a window of losses a few more."""

DEPTH = 32
"""Operations to go back from the differentiated tensor, past what may be kept: the loss that was divided, one of its
terms, the logits. By reasoning: what lies further back is in the model."""


class _Sentinel:
    """Lives as long as the graph that it was put into."""


class GraphsKept(Check):
    """Losses are kept with their graphs from update to update, so that memory grows until it is exhausted.

    ## Why is this a bug?
    No result changes while the memory lasts. A loss tensor holds the graph that it was computed with. `total += loss`,
    or a list of losses, keeps one more graph with each update: the process slows down and runs out of memory after
    hours.

    ## What to do
    Add up loss.item(), or keep loss.detach().

    ## When it is right
    Losses of a few micro-batches that are kept for one backward pass are not reported.

    ## References
    - https://docs.pytorch.org/docs/stable/notes/faq.html
    """

    severity = "warning"  # it costs memory, and changes no result for as long as there is some
    needs = "long enough series of backward passes"
    in_windows = "all"
    formerly = ("memory::graphs-are-freed",)

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.graphs: deque[ref[_Sentinel]] = deque(maxlen=ALIVE)

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
        self.graphs.append(ref(sentinel))
        self.looked |= len(self.graphs) == ALIVE
        if len(self.graphs) == ALIVE and all(graph() is not None for graph in self.graphs):
            self.found(
                expected="a loss that is let go after its backward pass",
                observed=f"the losses of the last {ALIVE} backward passes are all alive, with their graphs",
                where=event.where,
                update=self.monitor.update,
            )
