"""A mean of the means of batches, which may be the mean."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader

from harness.watch import watch


class Texts(nn.Module):
    """Says the same of everything, or not."""

    def __init__(self, young: bool) -> None:
        super().__init__()
        self.table = nn.Embedding(6, 6)
        if young:
            nn.init.zeros_(self.table.weight)

    def forward(self, ids: torch.Tensor, *, heat: torch.Tensor) -> torch.Tensor:
        return self.table(ids) / heat


@pytest.mark.parametrize("young", [True, False])
def test_a_mean_of_means_that_is_the_mean(young: bool) -> None:
    torch.manual_seed(0)
    model = Texts(young)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    heat = torch.tensor(0.5)
    texts = [torch.randint(6, (4, length)) for length in (3, 30, 6, 12)]
    with watch(raise_errors=False) as watched:
        for ids in texts:
            optimizer.zero_grad()
            functional.cross_entropy(model(ids, heat=heat).flatten(0, 1), ids.flatten()).backward()
            optimizer.step()
        model.eval()
        total, targets = 0.0, 0
        with torch.no_grad():
            rows: Any = [(text,) for text in texts]
            for (ids,) in DataLoader(rows, batch_size=None):
                loss = functional.cross_entropy(model(ids, heat=heat).flatten(0, 1), ids.flatten())
                total, targets = total + float(loss) * ids.numel(), targets + ids.numel()
        mean = total / targets
    assert mean > 0
    assert "metrics::mean-of-means" not in watched.crashed
    assert ("metrics::mean-of-means" in watched.looked) != young
