"""Losses by hand that subtract targets from what a model says: each row's own, or every target."""

from __future__ import annotations

import pytest
import torch

from harness.watch import watch

ID = "loss::broadcast"


@pytest.mark.parametrize(
    ("written", "found", "looked"),
    [
        ("broadcast", True, True),
        ("squeezed", False, True),
        ("unsqueezed", False, True),
        ("of no targets", False, False),
    ],
)
def test_a_loss_by_hand_is_judged_when_it_is_right_too(written: str, found: bool, looked: bool) -> None:
    """Else no repair of it could be proved: its check would have nothing to look at."""
    torch.manual_seed(0)
    rows, targets, model = torch.randn(16, 8), torch.randn(16), torch.nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    with watch(select=[ID], raise_errors=False) as watched:
        for _ in range(2):
            said = model(rows)
            if written == "of no targets":
                loss = said.exp().mean()
            elif written == "unsqueezed":
                loss = torch.mean((said - targets.unsqueeze(-1)) ** 2)
            else:
                loss = torch.mean(((said.squeeze(-1) if written == "squeezed" else said) - targets) ** 2)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    assert [each.check for each in watched.all_findings] == [ID] * found
    assert (ID in watched.looked) == looked
