"""What a file has of what was trained; a model is trained if a backward pass goes through whatever it gave."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from harness.watch import watch
from tests.watch.facts.small import sgd, step, training


@pytest.mark.parametrize("after", [0, 1])
def test_what_is_saved_before_the_last_update(after: int, tmp_path: Path) -> None:
    model = nn.Linear(4, 2)
    optimizer = sgd(model)
    with watch(raise_errors=False) as watched:
        for batch in training(4):
            step(model, optimizer, *batch)
        torch.save(model.state_dict(), tmp_path / "model.pt")
        for batch in training(after):
            step(model, optimizer, *batch)
    assert ("saved::not-what-was-trained" in watched.looked) == (after == 0)


class Gives(nn.Module):
    """Gives its loss beside what the script computes another one of, or alone."""

    def __init__(self, *, alone: bool) -> None:
        super().__init__()
        self.layer, self.alone = nn.Linear(6, 3), alone

    def forward(self, rows: torch.Tensor, labels: torch.Tensor) -> Any:
        scores = self.layer(rows)
        loss = nn.functional.cross_entropy(scores, labels)
        chosen = scores.log_softmax(-1).gather(-1, labels[:, None])
        return loss if self.alone else {"loss": loss, "chosen": chosen, "state": [scores]}


def rows() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(8, 6), torch.randint(3, (8,))


def test_a_loss_of_another_output(tmp_path: Path) -> None:
    model = Gives(alone=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watch(raise_errors=False) as watched:
        torch.save(model.state_dict(), tmp_path / "model.pt")
        for _ in range(5):
            optimizer.zero_grad()
            (-model(*rows())["chosen"].mean()).backward()
            optimizer.step()
    assert list(watched.findings) == ["saved::before-training"]


def test_what_was_saved_early_is_not_judged_where_nothing_says_what_is_trained(tmp_path: Path) -> None:
    model, table = Gives(alone=True), nn.Parameter(torch.zeros(3))
    optimizer = torch.optim.SGD([table], lr=0.1)
    with watch(raise_errors=False) as watched:
        torch.save(model.state_dict(), tmp_path / "model.pt")
        for _ in range(5):
            optimizer.zero_grad()
            table.sub(1).square().sum().backward()
            optimizer.step()
    assert "saved::before-training" not in watched.looked
