"""Graphs that a script keeps from one update to the next."""

from __future__ import annotations

from torch import nn
from torch.nn import functional

from harness.watch import watch
from tests.watch.facts.small import sgd, training


def test_what_a_loss_is_made_of_is_kept() -> None:
    model, kept = nn.Linear(4, 2), []
    optimizer = sgd(model)
    with watch(raise_errors=False) as watched:
        for rows, labels in training(9):
            optimizer.zero_grad()
            kept.append(model(rows))
            margins = kept[-1].tanh().exp().sqrt().log().mul(2)
            functional.cross_entropy(margins, labels).backward()
            optimizer.step()
    assert list(watched.findings) == ["memory::graphs-kept"]
