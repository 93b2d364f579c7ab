"""Which lists of one and the same module are a stack of layers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from harness.watch import watch

WIDTH = 8


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(WIDTH, WIDTH)

    def forward(self, *, states: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"states": self.linear(states).relu()}


class Stack(nn.Module):
    def __init__(self, layer: nn.Module, step: Callable[[nn.Module, Any, Any], torch.Tensor]) -> None:
        super().__init__()
        self.words, self.layers = nn.Embedding(20, WIDTH), nn.ModuleList([layer] * 3)
        self.others = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.out, self.step = nn.Linear(WIDTH, 2), step

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        states = self.words(tokens)
        for layer, other in zip(self.layers, self.others, strict=True):
            states = self.step(layer, other, states)
        logits: torch.Tensor = self.out(states.mean(1))
        return logits


class Compiled(nn.Module):
    """As torch.compile's, which would go on for the whole process."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self._orig_mod = model

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self._orig_mod(tokens)
        return logits


STACKED = {
    "as they are": lambda: Stack(nn.Linear(WIDTH, WIDTH), lambda layer, _, x: layer(x).relu()),
    "beside what they are given": lambda: Stack(nn.Linear(WIDTH, WIDTH), lambda layer, _, x: x + layer(x).relu()),
    "shortened": lambda: Stack(
        nn.Linear(WIDTH, WIDTH),
        lambda layer, _, x: nn.functional.max_pool1d(layer(x).transpose(1, 2), 2).transpose(1, 2),
    ),
    "by name": lambda: Stack(Layer(), lambda layer, _, x: layer(states=x)["states"]),
    "compiled": lambda: Compiled(Stack(nn.Linear(WIDTH, WIDTH), lambda layer, _, x: layer(x).relu())),
}
OTHERS = {
    "a layer between": lambda: Stack(nn.Linear(WIDTH, WIDTH), lambda layer, other, x: other(layer(x).relu())),
    "an activation": lambda: Stack(nn.PReLU(), lambda layer, other, x: layer(other(x))),
    "no chain": lambda: Stack(nn.Linear(WIDTH, WIDTH), lambda layer, other, x: other(x) + 0 * layer(x).detach()),
}


def found_in(model: nn.Module) -> dict[str, Any]:
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    with watch(raise_errors=False) as watched:
        for _ in range(4):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(torch.randint(20, (4, 16))), torch.randint(2, (4,))).backward()
            optimizer.step()
    return dict(watched.findings)


@pytest.mark.parametrize("make", STACKED.values(), ids=STACKED)
def test_a_stack_of_one_layer_is_named(make: Callable[[], nn.Module]) -> None:
    torch.manual_seed(0)
    assert "0, 1, 2 of Stack.layers" in found_in(make())["model::layers-shared"].observed


@pytest.mark.parametrize("make", OTHERS.values(), ids=OTHERS)
def test_what_no_layers_are_is_not(make: Callable[[], nn.Module]) -> None:
    torch.manual_seed(0)
    assert "model::layers-shared" not in found_in(make())
