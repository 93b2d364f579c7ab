"""Parameters that no gradient reaches."""

from __future__ import annotations

from collections.abc import Iterator

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


class Chosen(nn.Module):
    """A module that says itself what is to be trained."""

    def __init__(self) -> None:
        super().__init__()
        self.old, self.new = nn.Linear(4, 4), nn.Linear(4, 4)

    def parameters(self, recurse: bool = True) -> Iterator[nn.Parameter]:
        return self.new.parameters()

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.old(self.new(rows))
        return found


def test_a_module_may_say_itself_what_its_parameters_are() -> None:
    model = Chosen()
    optimizer = sgd(model)
    with watch(raise_errors=False) as watched:
        for batch in training(10):
            step(model, optimizer, *batch)
    assert not {"parameters::not-registered", "optimizer::missing-parameters"} & set(watched.findings)
