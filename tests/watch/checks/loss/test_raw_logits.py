"""What is given to a loss that takes raw logits."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

from harness.watch import reported, watch

Function = Callable[[torch.Tensor], torch.Tensor]


@pytest.mark.parametrize(
    ("made", "loss", "found"),
    [
        (nn.Identity(), nn.BCEWithLogitsLoss(), set()),
        (nn.LogSoftmax(1), nn.BCEWithLogitsLoss(), set()),
        (nn.Sigmoid(), nn.BCEWithLogitsLoss(), {"loss::not-raw-logits"}),
        (nn.Softmax(1), nn.BCEWithLogitsLoss(), {"loss::not-raw-logits"}),
        (nn.Softmax(1), nn.CrossEntropyLoss(), {"loss::not-raw-logits"}),
        (nn.LogSoftmax(1), nn.CrossEntropyLoss(), set()),
    ],
)
def test_what_is_no_raw_logit_is_named(made: Function, loss: Callable[..., torch.Tensor], found: set[str]) -> None:
    torch.manual_seed(0)
    rows, model = torch.randn(240, 5), nn.Linear(5, 4)
    targets = torch.eye(4)[torch.randint(4, (240,))]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watch(raise_errors=False, select=["loss::not-raw-logits"]) as watched:
        for picked in torch.randperm(240).split(24):
            optimizer.zero_grad()
            loss(made(model(rows[picked])), targets[picked]).backward()
            optimizer.step()
    assert {each.check for each in reported([*watched.findings.values()], ())} == found
