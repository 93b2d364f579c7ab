"""What findings say of runs that go wrong in another way than most."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.optim.lr_scheduler import LinearLR, OneCycleLR
from torch.utils.data import DataLoader, TensorDataset

from harness.compare.differences import _tensors
from harness.starts.directory import Directory
from harness.starts.mirror import Mirror
from harness.watch import watch
from harness.watch.checks.schedule.rates import LrZero
from harness.watch.events import End, StepBegins
from harness.watch.locate import Locator
from harness.watch.monitor import Monitor, OptimizerSeen, Options
from harness.watch.session import Session


def updates(model: nn.Module, optimizer: torch.optim.Optimizer, count: int, scheduler: Any = None) -> None:
    for _ in range(count):
        optimizer.zero_grad()
        functional.cross_entropy(model(torch.randn(8, 4)), torch.randint(2, (8,))).backward()
        optimizer.step()
        if scheduler is not None:
            scheduler.step()


def test_a_negative_rate_is_none_of_zero() -> None:
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watch(raise_errors=False) as watched:
        optimizer.param_groups[0]["lr"] = -0.01
        updates(model, optimizer, 5)
    assert watched.findings["schedule::lr-zero"].observed == "the learning rate is -0.01 for three updates in a row"


def test_a_schedule_that_is_left_while_it_rises() -> None:
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watch(raise_errors=False) as watched:
        updates(model, optimizer, 12, OneCycleLR(optimizer, max_lr=1.0, total_steps=600))
    observed = watched.findings["schedule::wrong-length"].observed
    steps, rises = "is made for 600 steps but gets only 12", "the learning rate still rises at 5% of its peak"
    assert observed == f"OneCycleLR: the schedule {steps}, so {rises}"


def test_numbers_that_overflow_are_no_other_formula() -> None:
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e38)
    with watch(raise_errors=False) as watched:
        for _ in range(3):
            optimizer.zero_grad()
            model(torch.randn(8, 4) * 100).square().mean().backward()
            optimizer.step()
    assert "update::not-as-defined" not in watched.findings
    assert "loss::not-finite" in watched.findings


def test_a_loss_that_lets_no_update_be_made() -> None:
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watch(raise_errors=False, must_train=False) as watched:
        for _ in range(3):
            optimizer.zero_grad()
            loss = model(torch.randn(8, 4)).sum() * float("nan")
            loss.backward()
            if loss.isfinite():
                optimizer.step()
    assert watched.findings["loss::not-finite"].observed == "the loss is nan, and no update is made"


def test_a_multiple_is_said_within_the_sentence() -> None:
    a = {"weight": torch.tensor([1.0, 2.0])}
    found = _tensors(1, "gradients", "the gradients", a, {"weight": a["weight"] * 1.5})
    assert found is not None
    assert found.what == "the gradients (B's are A's times 1.5)"


def of_a_bare_parameter() -> Session:
    weight = nn.Parameter(torch.ones(3))
    optimizer = torch.optim.SGD([weight], lr=0.1)
    with watch(raise_errors=False) as watched:
        for _ in range(4):
            optimizer.zero_grad()
            torch.tensor((weight - 2).square().sum().item(), requires_grad=True).backward()
            optimizer.step()
    return watched


def test_a_bare_parameter_is_no_other_model() -> None:
    (finding,) = of_a_bare_parameter().findings.values()
    assert finding.check == "gradients::cut-off"
    assert "their model is called" not in finding.observed
    assert "ends in a new tensor" in finding.observed


@pytest.mark.parametrize(
    ("word", "inside"),
    [
        ("/app", "/copy"),
        ("/app/data", "/copy/data"),
        ("--data=/app/data", "--data=/copy/data"),
        ("/app:/other", "/copy:/other"),
        ("--url=https://host/app/x", "--url=https://host/app/x"),
        ("--data=/app-data", "--data=/app-data"),
        ("/data/app", "/data/app"),
    ],
)
def test_only_paths_within_the_working_directory_are_others_in_its_copy(word: str, inside: str, tmp_path: Path) -> None:
    directory = Directory(tmp_path, Mirror(tmp_path / "at"), tmp_path / "logs")
    assert directory.inside(word, ["/app"]).replace(directory.mirror.of("/app"), "/copy") == inside


@pytest.mark.parametrize("stepped", ["in a pass more", "in the evaluation", "at each micro-batch"])
def test_a_pass_more_than_a_schedule_was_made_for_is_no_other_unit(stepped: str) -> None:
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(TensorDataset(torch.randn(80, 4), torch.randint(2, (80,))), batch_size=8)
    accumulated = 2 if stepped == "at each micro-batch" else 1
    with watch(raise_errors=False) as watched:
        schedule = LinearLR(optimizer, 1.0, 0.0, total_iters=20)
        for _ in range({"in a pass more": 3, "in the evaluation": 2, "at each micro-batch": 4}[stepped]):
            for number, (rows, labels) in enumerate(loader, start=1):
                (functional.cross_entropy(model(rows), labels) / accumulated).backward()
                if number % accumulated == 0:
                    optimizer.step()
                    optimizer.zero_grad()
                schedule.step()
            if stepped == "in the evaluation":
                with torch.no_grad():
                    for rows, _ in loader:
                        model(rows)
                        schedule.step()
    if stepped == "at each micro-batch":
        said = watched.findings["schedule::stepped-in-wrong-unit"]
        assert said.observed.endswith("it is stepped 2 times per update")
        return
    check = "schedule::wrong-length" if stepped == "in a pass more" else "schedule::stepped-in-wrong-unit"
    said = watched.findings[check]
    assert said.observed == "LinearLR: the schedule is over after 20 of 30 steps, one pass too early"
    assert said.expected == "as many passes over the data as the schedule was made for (20 steps)"
    assert said.hint == "Make the schedule for 30 steps, or train for one pass less."


@pytest.mark.parametrize(
    ("line", "scheduled", "where"), [(1, True, "schedule"), (1, False, "optimizer"), (2, True, "")]
)
def test_a_rate_of_zero_in_a_librarys_loop_is_of_who_configured_it(
    line: int, scheduled: bool, where: str, tmp_path: Path
) -> None:
    (tmp_path / "fit.py").write_text("trainer.fit(model)\noptimizer.step()\n")
    monitor = Monitor(Options(checks=(LrZero,)), Locator())
    optimizer = torch.optim.SGD(nn.Linear(4, 2).parameters(), lr=0.0)
    schedule = LinearLR(optimizer)
    monitor.optimizers[optimizer] = OptimizerSeen(made="model.py:7 optimizer")
    if scheduled:
        monitor.schedulers[schedule] = "model.py:8 schedule"
    for number in (1, 2, 3):
        place, made = f"{tmp_path / 'fit.py'}:{line}", "model.py:7 optimizer"
        monitor.emit(StepBegins(optimizer, number, number, True, place, made=made))
    monitor.emit(End())
    (said,) = monitor.findings
    assert said.where is not None
    assert said.where.endswith(where or "fit.py:2")


@pytest.mark.parametrize("by_hand", [True, False])
def test_a_loss_that_is_not_finite_where_updates_are_made_by_hand(by_hand: bool) -> None:
    model = nn.Linear(4, 2)
    with watch(raise_errors=False) as watched:
        for number in range(4):
            loss = functional.cross_entropy(model(torch.randn(8, 4)), torch.randint(2, (8,)))
            (loss * (float("nan") if number == 3 else 1)).backward()
            if by_hand:
                with torch.no_grad():
                    parameters: list[torch.Tensor] = [*model.parameters()]
                    for parameter in parameters:
                        assert parameter.grad is not None
                        parameter -= 0.1 * parameter.grad
                        parameter.grad = None
    observed = watched.findings["loss::not-finite"].observed
    assert observed == ("the loss is nan" if by_hand else "the loss is nan, and no update is made")
