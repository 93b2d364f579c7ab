"""Rows that come twice in a pass."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader

from harness.watch import watch
from tests.watch.facts.small import sgd, step


@pytest.mark.parametrize("twice", ["training", "evaluation", "neither"])
def test_a_few_rows_that_come_twice(twice: str) -> None:
    rows, model = torch.randn(96, 4), nn.Linear(4, 2)
    optimizer = sgd(model)
    rows[3 if twice == "training" else 67] = rows[5 if twice == "training" else 65 + 2 * (twice == "neither")]
    with watch(raise_errors=False) as watched:
        for (batch,) in DataLoader(torch.utils.data.TensorDataset(rows[:64]), batch_size=16):
            step(model, optimizer, batch, torch.zeros(len(batch), dtype=torch.long))
        with torch.no_grad():
            for (batch,) in DataLoader(torch.utils.data.TensorDataset(rows[64:]), batch_size=16):
                model.eval()(batch)
    assert "rows::repeated-or-skipped" not in watched.findings
    assert ("rows::repeated-or-skipped" in watched.looked) == (twice == "neither")
