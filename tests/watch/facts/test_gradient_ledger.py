from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from harness.watch.facts.gradient_ledger import GradientsUsed
from tests.watch.run.account import told


@pytest.mark.parametrize("clears", [True, False])
def test_gradients_that_the_script_sets_are_of_no_backward_pass(clears: bool) -> None:
    """As of an optimizer whose step goes to where a copy of its network was trained to."""

    def loop() -> None:
        slow = nn.Linear(4, 1)
        outer = torch.optim.SGD(slow.parameters(), lr=0.5)
        for _ in range(3):
            fast = copy.deepcopy(slow)
            inner = torch.optim.SGD(fast.parameters(), lr=0.1)
            for _ in range(2):
                inner.zero_grad()
                fast(torch.randn(8, 4)).pow(2).mean().backward()
                inner.step()
            if clears:
                outer.zero_grad()
            for mine, its in zip(slow.parameters(), fast.parameters(), strict=True):
                mine.grad = torch.zeros_like(mine) if mine.grad is None else mine.grad
                mine.grad.data.copy_(mine.data - its.data)
            outer.step()

    used = told(GradientsUsed, loop)
    assert {len(fact.fresh) for fact in used} <= {0, 1}
    assert all(not fact.stale and (bool(fact.fresh) or fact.optimizer.param_groups[0]["lr"] == 0.5) for fact in used)
