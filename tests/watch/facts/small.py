"""A small training, whose tests need no more of it."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import nn
from torch.nn import functional


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
