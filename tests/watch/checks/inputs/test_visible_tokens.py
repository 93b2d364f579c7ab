"""Targets that a model is shown: where its head says nothing yet, nothing shows it."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from harness.watch import watch
from tests.watch.facts.small import sgd, step


class Speaks(nn.Module):
    def __init__(self, begins_at_zero: bool) -> None:
        super().__init__()
        self.embedding, self.layer = nn.Embedding(20, 8), nn.GRU(8, 8, batch_first=True)
        self.head = nn.Linear(8, 20)
        if begins_at_zero:
            nn.init.zeros_(self.head.weight)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.head(self.layer(self.embedding(ids))[0])
        return logits


@pytest.mark.parametrize("begins_at_zero", [True, False])
@pytest.mark.parametrize(("shift", "check"), [(0, "inputs::labels-not-shifted"), (1, "inputs::next-token-visible")])
def test_a_head_of_zeros_says_nothing(shift: int, check: str, begins_at_zero: bool) -> None:
    model = Speaks(begins_at_zero)
    optimizer = sgd(model)
    with watch(raise_errors=False) as watched:
        for _ in range(3):
            ids = torch.randint(20, (5, 9))
            step(model, optimizer, ids[:, :8], ids[:, shift : 8 + shift])
    assert (check in watched.looked) != begins_at_zero
    assert (check in watched.findings) == (not shift and not begins_at_zero)
