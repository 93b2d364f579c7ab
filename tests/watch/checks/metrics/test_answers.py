"""What is compared with labels: of too few rows nothing is said."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from harness.watch import watch
from tests.watch.facts.small import sgd, step, training


@pytest.mark.parametrize("rows", [4, 8])
def test_scores_of_few_rows(rows: int) -> None:
    model = nn.Linear(4, 2)
    optimizer = sgd(model)
    with watch(raise_errors=False) as watched:
        for batch in training():
            step(model, optimizer, *batch)
        model.eval()
        with torch.no_grad():
            (model(torch.randn(rows, 4)).argmax(1) == torch.randint(2, (rows,))).float().mean()
    assert ("metrics::broadcast" in watched.looked) == (rows == 8)
