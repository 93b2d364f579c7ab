"""In which losses the right candidate is among the wrong ones, and in which scores are alike for another reason."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

from harness.watch import reported, watch
from harness.watch.checks.loss.observations.candidates import _on_a_grid


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


def test_many_small_scores_are_on_no_grid_but_that_of_float32() -> None:
    torch.manual_seed(0)
    scores = 0.05 * torch.randn(128, 64)  # so close to one another that two differ by the last bit
    assert not _on_a_grid(scores)
    assert _on_a_grid(quantised(scores))
