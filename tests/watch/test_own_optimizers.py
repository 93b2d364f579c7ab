"""Optimizers of one's own that are derived from torch's: which of their updates are called wrong."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from harness.watch import watch


class OfItsOwn(torch.optim.Adam):
    """Half of Adam's update, but for the first tensors, whose moments are not corrected."""

    uncorrected = 0

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for number, parameter in enumerate(group["params"]):
                state = self.state[parameter]
                if not state:
                    state.update(step=0, exp_avg=torch.zeros_like(parameter), exp_avg_sq=torch.zeros_like(parameter))
                state["step"] += 1
                first = state["exp_avg"].lerp_(parameter.grad, 1 - beta1)
                second = state["exp_avg_sq"].lerp_(parameter.grad.square(), 1 - beta2)
                share = 1.0
                if number >= self.uncorrected:
                    first, second = first / (1 - beta1 ** state["step"]), second / (1 - beta2 ** state["step"])
                    share = 0.5
                parameter.addcdiv_(first, second.sqrt() + group["eps"], value=-group["lr"] * share)


@pytest.mark.parametrize(("uncorrected", "checks"), [(0, set()), (1, set()), (4, {"update::not-as-defined"})])
def test_a_known_fault_is_one_where_all_tensors_have_it(uncorrected: int, checks: set[str]) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 4), nn.ReLU(), nn.Linear(4, 2))
    optimizer = OfItsOwn(model.parameters(), lr=1e-2)
    optimizer.uncorrected = uncorrected
    with watch(raise_errors=False) as watched:
        for _ in range(8):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(torch.randn(16, 8)), torch.randint(2, (16,))).backward()
            optimizer.step()
    assert set(watched.findings) == checks
    if checks:
        assert "the moments are not corrected" in watched.findings["update::not-as-defined"].observed
