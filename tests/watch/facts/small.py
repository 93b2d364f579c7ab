"""A small training, and what is found in a loop."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import nn
from torch.nn import functional

from harness.watch import watch


def step(model: nn.Module, optimizer: torch.optim.Optimizer, rows: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    optimizer.zero_grad()
    logits: torch.Tensor = model(rows)
    functional.cross_entropy(logits.flatten(0, -2), labels.flatten()).backward()
    optimizer.step()
    return logits


def sgd(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), lr=0.1)


def training(updates: int = 3) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    for _ in range(updates):
        yield torch.randn(16, 4), torch.randint(2, (16,))


def found(loop: Callable[[], object]) -> set[str]:
    """The checks that found something in a loop, which need not train."""
    torch.manual_seed(0)
    with watch(raise_errors=False, must_train=False) as watched:
        loop()
    assert watched.crashed == {}
    return set(watched.findings)
