"""Which class weights are in the order of other classes, which rise with the shares, and which were chosen."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from harness.watch import reported, watch

OTHERS, FREQUENT = {"loss::weights-of-other-classes"}, {"loss::weights-for-frequent-classes"}
SHARES = torch.tensor([0.1, 0.7, 0.2])
TAGS = torch.tensor([0.1, 0.2, 0.75])


@pytest.mark.parametrize(
    ("weights", "found"),
    [
        (1 / SHARES, set()),
        (SHARES**-0.5, set()),
        (torch.tensor([1.0, 3.0, 10.0]), set()),
        ((1 / SHARES)[[1, 0, 2]], OTHERS),
        (SHARES, FREQUENT),
        (100 * SHARES**0.5, FREQUENT | OTHERS),
    ],
    ids=["inverses", "roots", "chosen", "other order", "shares", "roots of shares"],
)
def test_weights_of_classes(weights: torch.Tensor, found: set[str]) -> None:
    torch.manual_seed(0)
    kinds = torch.multinomial(SHARES, 900, replacement=True)
    assert trained(nn.CrossEntropyLoss(weight=weights), kinds) == found


@pytest.mark.parametrize(
    ("weights", "found"),
    [((1 - TAGS) / TAGS, set()), (torch.tensor([2.0, 5.0, 1.0]), set()), (TAGS / (1 - TAGS), FREQUENT)],
    ids=["negatives by positives", "chosen", "positives by negatives"],
)
def test_weights_of_positives(weights: torch.Tensor, found: set[str]) -> None:
    torch.manual_seed(0)
    assert trained(nn.BCEWithLogitsLoss(pos_weight=weights), (torch.rand(900, 3) < TAGS).float()) == found


def test_classes_that_are_about_as_frequent_say_nothing() -> None:
    torch.manual_seed(0)
    shares = torch.tensor([0.25, 0.42, 0.33])
    kinds = torch.multinomial(shares, 900, replacement=True)
    assert trained(nn.CrossEntropyLoss(weight=shares), kinds) == set()


def trained(criterion: nn.Module, targets: torch.Tensor) -> set[str]:
    """What is found in a training on these targets."""
    rows, model = torch.randn(len(targets), 5), nn.Linear(5, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watch(raise_errors=False) as watched:
        for picked in torch.randperm(len(targets)).split(60):
            optimizer.zero_grad()
            criterion(model(rows[picked]), targets[picked]).backward()
            optimizer.step()
    return {finding.check for finding in reported([*watched.findings.values()], ())}
