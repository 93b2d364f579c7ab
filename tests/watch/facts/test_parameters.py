"""Parameters that no gradient reaches."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from harness.watch import watch
from tests.watch.facts.small import sgd, step, training


class Deep(nn.Module):
    def __init__(self, cut: bool) -> None:
        super().__init__()
        self.layers, self.aside, self.cut = nn.ModuleList([nn.Linear(4, 4) for _ in range(9)]), nn.Linear(4, 4), cut

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        aside = self.aside(rows)
        for layer in self.layers:
            rows = layer(rows).tanh()
        found: torch.Tensor = rows + (aside.detach() if self.cut else aside)
        return found


@pytest.mark.parametrize("cut", [True, False])
def test_a_small_part_without_gradients(cut: bool) -> None:
    model = Deep(cut)
    optimizer = sgd(model)
    with watch(raise_errors=False) as watched:
        for batch in training():
            step(model, optimizer, *batch)
    assert "gradients::cut-off" not in watched.findings
    assert ("gradients::cut-off" in watched.looked) != cut
    assert cut == watched.lacking.get("gradients::cut-off", "").startswith("too few parameters without")
