"""Optimizers of one's own that are derived from torch's: which of their updates are called wrong."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from harness.watch import watch
from harness.watch.facts import reference_updates, tensor_updates
from harness.watch.host import MOST_ELEMENTS


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


@pytest.fixture(params=[1_000_000, 5], ids=["whole tensors", "a part of their elements"])
def most_elements(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reference_updates, "MOST_ELEMENTS", request.param)


@pytest.mark.usefixtures("most_elements")
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


@pytest.mark.usefixtures("most_elements")
@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (torch.optim.AdamW, {"lr": 1e-3, "weight_decay": 0.1}),
        (torch.optim.SGD, {"lr": 1e-2, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
    ],
)
def test_the_optimizers_of_torch_are_as_defined(
    kind: type[torch.optim.Optimizer], options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected: list[torch.Tensor | None] = []

    def kept(*given: Any) -> torch.Tensor | None:
        expected.append(reference_updates.expected_update(*given))
        return expected[-1]

    monkeypatch.setattr(tensor_updates, "expected_update", kept)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 4), nn.ReLU(), nn.Linear(4, 2))
    model[0].weight = nn.Parameter(torch.randn(8, 4).t())  # whose elements lie in another order
    optimizer = kind(model.parameters(), **options)
    with watch(raise_errors=False) as watched:
        for _ in range(8):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(torch.randn(16, 8)), torch.randint(2, (16,))).backward()
            optimizer.step()
    assert set(watched.findings) == set()
    assert len(expected) == 8 * 4
    assert all(each is not None for each in expected)


def test_of_a_large_tensor_few_elements_are_looked_at() -> None:
    large = nn.Parameter(torch.arange(3_100_000.0).reshape(1000, 3100))
    found = reference_updates.looked_at(large, large)
    assert MOST_ELEMENTS / 2 < found.numel() <= MOST_ELEMENTS
    assert found[0] == 0
    assert found[-1] > 3_099_000, "of all parts"
    step = torch.tensor(3.0)
    assert reference_updates.looked_at(step, large) is not large
    assert float(reference_updates.looked_at(step, large)) == 3
