"""In which losses the right candidate is among the wrong ones, and in which scores are alike for another reason."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

from harness.watch import reported, watch


def as_they_are(scores: torch.Tensor) -> torch.Tensor:
    return scores


def quantised(scores: torch.Tensor) -> torch.Tensor:
    """On a grid of steps of 0.107, with the gradient of what was rounded."""
    return scores + ((scores / 0.107).round() * 0.107 - scores).detach()


def with_the_right_one_twice(scores: torch.Tensor) -> torch.Tensor:
    return torch.cat([scores, scores[:, :1]], 1)


@pytest.mark.parametrize(
    ("made", "found"),
    [
        (as_they_are, set()),
        (quantised, set()),
        (torch.relu, set()),
        (with_the_right_one_twice, {"loss::right-among-wrong"}),
    ],
)
def test_scores_that_are_alike(made: Callable[[torch.Tensor], torch.Tensor], found: set[str]) -> None:
    torch.manual_seed(0)
    rows, model = torch.randn(240, 5), nn.Linear(5, 6)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with watch(raise_errors=False, select=["loss"]) as watched:
        for picked in torch.randperm(240).split(24):
            optimizer.zero_grad()
            targets = torch.zeros(24, dtype=torch.long)
            nn.functional.cross_entropy(made(model(rows[picked])), targets).backward()
            optimizer.step()
    assert {each.check for each in reported([*watched.findings.values()], ())} == found
