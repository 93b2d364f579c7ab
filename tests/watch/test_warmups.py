"""A warmup that outlasts the training, however far; what never stops rising is none, and is not said to hold."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.optim.lr_scheduler import CosineAnnealingLR, LambdaLR, LinearLR, SequentialLR

from harness.torch_objects import TWINS
from harness.watch import watch
from harness.watch.session import Session

ID = "schedule::warmup-never-ends"


def trained(factor: Callable[[int], float], updates: int = 12) -> Session:
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watch(raise_errors=False) as watched:
        scheduler = LambdaLR(optimizer, factor)
        for _ in range(updates):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(torch.randn(8, 4)), torch.randint(2, (8,))).backward()
            optimizer.step()
            scheduler.step()
    return watched


@pytest.mark.parametrize("warmup", [30, 300, 1200])
@pytest.mark.parametrize("after", [0.0, 1.0])
def test_a_warmup_that_never_ends(warmup: int, after: float) -> None:
    watched = trained(lambda step: step / warmup if step < warmup else after)
    finding = watched.findings[ID]
    assert f"still rises, at {11 / (warmup - 1 + after):.0%} of its peak" in finding.observed


def test_what_rises_without_end_is_not_judged() -> None:
    watched = trained(lambda step: 1.5**step)
    assert ID not in watched.findings
    assert ID not in watched.looked


def test_a_warmup_that_ends_holds() -> None:
    watched = trained(lambda step: min(1.0, step / 4))
    assert ID not in watched.findings
    assert ID in watched.looked


def test_what_is_asked_in_a_schedulers_place_is_not_the_scripts() -> None:
    """Else each watch of a process would make twins of all twins before it."""

    def watched() -> Session:
        model = nn.Linear(4, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        scheduler = SequentialLR(optimizer, [LinearLR(optimizer), CosineAnnealingLR(optimizer, 8)], milestones=[4])
        with watch(raise_errors=False) as watched:
            for _ in range(12):
                optimizer.zero_grad()
                model(torch.randn(8, 4)).sum().backward()
                optimizer.step()
                scheduler.step()
        return watched

    before = len(TWINS)
    first = watched()
    assert first.updates_made == 12
    assert len(TWINS) > before
    assert not set(watched().first.schedulers).intersection(TWINS)
