"""Compilations: how many graphs torch.compile makes of batches, with a backend that compiles nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch


def graphs(module: torch.nn.Module, batches: Iterable[torch.Tensor]) -> list[int]:
    """How many graphs were made after each batch, where every shape has a graph of its own, as on a TPU.

    Raises:
        RuntimeError: this torch cannot compile on this Python or platform.
    """
    made = 0

    def counts(graph: torch.fx.GraphModule, inputs: list[Any]) -> Callable[..., Any]:
        nonlocal made
        made += 1
        forward: Callable[..., Any] = graph.forward
        return forward

    after: list[int] = []
    torch._dynamo.reset()
    try:
        compiled = torch.compile(module, backend=counts, dynamic=False)
        with torch.no_grad():
            for batch in batches:
                compiled(batch)
                after.append(made)
    finally:
        torch._dynamo.reset()
    return after
