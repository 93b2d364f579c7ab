"""A model is known to be trained by whatever it gave that a backward pass goes through."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from harness.watch import watch


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


def test_a_bare_loss() -> None:
    model = Gives(alone=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watch(raise_errors=False) as watched:
        for _ in range(12):
            optimizer.zero_grad()
            for _ in range(4):
                model(*rows()).backward()
            optimizer.step()
    assert list(watched.findings) == ["gradients::accumulation-unscaled"]
    assert "optimizer::missing-parameters" in watched.looked


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


class Series(nn.Module):
    def __init__(self, batch_first: bool) -> None:
        super().__init__()
        self.lstm, self.head = nn.LSTM(4, 8, batch_first=batch_first), nn.Linear(8, 2)

    def forward(self, given: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.head(self.lstm(given)[0][:, -1])
        return logits


@pytest.mark.parametrize(("batch_first", "labelled"), [(False, True), (True, True), (False, False)])
def test_slices_of_which_each_row_has_a_label_say_which_dimension_is_theirs(batch_first: bool, labelled: bool) -> None:
    torch.manual_seed(0)
    rows, labels, model = torch.randn(60, 12, 4), torch.randint(2, (60,)), Series(batch_first)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watch(select=["model::output-depends-on-batch"], raise_errors=False) as watched:
        for start in range(0, 40, 10):
            taught = labels[start : start + 10]
            nn.functional.cross_entropy(
                model(rows[start : start + 10]), taught if labelled else taught.clone()
            ).backward()
            optimizer.step()
            optimizer.zero_grad()
        model.eval()
        with torch.no_grad():
            model(rows[40:])
    assert bool(watched.all_findings) == (not batch_first and labelled)
    assert bool(watched.looked) == labelled
