"""Schedules: how long they are, and warmups that outlast the training, however far."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.optim.lr_scheduler import CosineAnnealingLR, LambdaLR, LinearLR, SequentialLR
from torch.utils.data import DataLoader

from harness.torch_objects import TWINS
from harness.watch import watch
from harness.watch.facts import schedules
from harness.watch.session import Session
from tests.watch.facts.small import sgd, step, training

ID = "schedule::warmup-never-ends"


@pytest.mark.parametrize(("updates", "is_measured"), [(1, False), (8, True)])
def test_the_length_of_a_schedule_of_few_steps(updates: int, is_measured: bool) -> None:
    """A schedule of epochs that is stepped two epochs late ends two steps early, as rounding may have it.

    A scheduler of another loop, which is there still, has no part in it.
    """
    elsewhere = torch.optim.lr_scheduler.LinearLR(sgd(nn.Linear(4, 2)))
    model = nn.Linear(4, 2)
    optimizer = sgd(model)
    loader = DataLoader(torch.utils.data.TensorDataset(torch.randn(128, 4), torch.randint(2, (128,))), batch_size=16)
    with watch(raise_errors=False) as watched:
        scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.01, total_iters=5 * updates)
        for epoch in range(5):
            for number, batch in enumerate(loader, start=1):
                step(model, optimizer, *batch)
                if number > 8 - updates and (updates > 1 or epoch >= 2):
                    scheduler.step()
    for check in ("schedule::wrong-length", "schedule::may-be-too-long"):
        assert check not in watched.findings
        assert (check in watched.looked) == is_measured
        assert is_measured or watched.lacking[check].startswith("too few steps of the schedule")
    assert elsewhere.last_epoch == 0


def test_a_scheduler_of_another_loop_is_not_asked_for_its_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []

    def schedule_of(scheduler: object) -> schedules.Schedule:
        asked.append(scheduler)
        return schedules.schedule_of(scheduler)

    monkeypatch.setattr("harness.watch.facts.scheduler_ledger.schedule_of", schedule_of)
    model = nn.Linear(4, 2)
    optimizer = sgd(model)
    elsewhere, mine = LinearLR(sgd(nn.Linear(4, 2))), LinearLR(optimizer)
    with watch(raise_errors=False):
        for batch in training():
            step(model, optimizer, *batch)
            mine.step()
    assert mine in asked
    assert elsewhere not in asked


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
