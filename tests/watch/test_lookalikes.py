"""Correct loops that look like ones with a bug to who looks at one thing alone, each beside its buggy neighbour."""

from __future__ import annotations

import copy
import functools
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import DataLoader, TensorDataset

from harness.watch import watch
from harness.watch.facts.schedules import schedule_of
from harness.watch.facts.twins import Twin
from tests.watch.facts.small import found

# Reductions by their old names


@pytest.mark.filterwarnings("ignore:size_average and reduce")
@pytest.mark.parametrize(
    ("old", "is_mean"),
    [
        ({"size_average": False}, False),
        ({"reduce": False}, False),
        ({"size_average": False, "reduce": True}, False),
        ({"size_average": True}, True),
        ({"reduce": True}, True),
    ],
)
def test_a_reduction_by_its_old_name(old: dict[str, Any], is_mean: bool) -> None:
    """Sums over batches may be divided by the number of rows, and means may not."""

    def loop() -> None:
        rows = TensorDataset(torch.randn(96, 6), torch.randint(3, (96,)))
        model = nn.Linear(6, 3)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(3):
            for x, y in DataLoader(TensorDataset(torch.randn(80, 6), torch.randint(3, (80,))), 20, shuffle=True):
                optimizer.zero_grad()
                functional.cross_entropy(model(x), y).backward()
                optimizer.step()
            model.eval()
            with torch.no_grad():
                total = sum(functional.cross_entropy(model(x), y, **old).sum().item() for x, y in DataLoader(rows, 25))
            model.train()
            print(f"loss {total / 96:.5f}")

    assert found(loop) == ({"metrics::of-other-rows"} if is_mean else set())


# What is saved, beside what was evaluated


@pytest.mark.parametrize("with_graph", [True, False])
@pytest.mark.parametrize("evaluated", ["policy", "average"])
def test_what_is_evaluated_beside_a_reference_is_saved(with_graph: bool, evaluated: str, tmp_path: Path) -> None:
    """A loss that records a graph, which nobody differentiates, evaluates too."""

    def loop() -> None:
        policy = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 2))
        average = torch.optim.swa_utils.AveragedModel(policy).eval()
        optimizer = torch.optim.AdamW(policy.parameters(), lr=1e-2)

        def step() -> None:
            x = torch.randn(16, 6)
            optimizer.zero_grad()
            functional.cross_entropy(policy(x), (x[:, 0] > 0).long()).backward()
            optimizer.step()
            average.update_parameters(policy)

        for _ in range(12):
            step()
        asked = torch.randn(16, 6)
        policy.eval()
        with torch.no_grad():
            average(asked)
        with torch.set_grad_enabled(with_graph):
            if evaluated == "policy":
                policy(asked)
        torch.save(policy.state_dict(), tmp_path / "policy.pt")
        policy.train()

    assert found(loop) == (set() if evaluated == "policy" else {"saved::not-what-was-evaluated"})


class Autocast(nn.Module):
    """Computes in half precision by itself, with weights in full precision."""

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self.layer, self.dtype = nn.Linear(4, 2), dtype

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", self.dtype, enabled=self.dtype != torch.float32):
            said: torch.Tensor = self.layer(rows)
        return said.float()


def test_half_precision_is_seen_where_it_is_computed_in() -> None:
    rows = [torch.randn(3, 4)]
    assert Twin(Autocast(torch.bfloat16)).computes_in_half_precision(rows, {})
    assert not Twin(Autocast(torch.float32)).computes_in_half_precision(rows, {})
    with torch.autocast("cpu", torch.bfloat16):
        assert Twin(Autocast(torch.bfloat16)).computes_in_half_precision(rows, {})


@pytest.mark.parametrize("copied", [True, False])
def test_a_copy_of_a_trained_base_is_not_random(copied: bool) -> None:
    def loop() -> None:
        base, head = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 16)), nn.Linear(16, 2)
        model = nn.ModuleDict({"base": base, "head": head, "more": nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))})
        optimizer = torch.optim.Adam([*base.parameters(), *head.parameters()], lr=1e-2)
        for _ in range(10):
            x = torch.randn(16, 6)
            optimizer.zero_grad()
            functional.cross_entropy(head(base(x)), (x[:, 0] > 0).long()).backward()
            optimizer.step()
        others = {name: each for name, each in model.state_dict().items() if not name.startswith("base.0")}
        fresh = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 16))
        again = nn.ModuleDict(
            {
                "base": copy.deepcopy(base) if copied else fresh,
                "head": nn.Linear(16, 2),
                "more": nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2)),
            }
        )
        again.load_state_dict(others, strict=False)
        again.eval()
        Called(again)(torch.randn(8, 6))

    assert found(loop) == (set() if copied else {"weights::left-random"})


@pytest.mark.parametrize("lacks", [False, True])
def test_an_adapter_of_a_base_that_was_trained_before_lacks_nothing(lacks: bool, tmp_path: Path) -> None:
    peft = pytest.importorskip("peft")

    def loop() -> None:
        base = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 2))

        def train(model: nn.Module) -> None:
            optimizer = torch.optim.Adam([each for each in model.parameters() if each.requires_grad], lr=1e-2)
            for _ in range(10):
                x = torch.randn(16, 6)
                optimizer.zero_grad()
                functional.cross_entropy(model(x), (x[:, 0] > 0).long()).backward()
                optimizer.step()

        train(base)
        if lacks:
            torch.save(
                {name: each for name, each in base.state_dict().items() if "bias" not in name}, tmp_path / "base"
            )
        else:
            model = peft.get_peft_model(base, peft.LoraConfig(r=2, target_modules=["0"]))
            train(model)
            model.save_pretrained(tmp_path)

    assert found(loop) == ({"saved::state-incomplete"} if lacks else set())


class Called(nn.Module):
    def __init__(self, of: nn.ModuleDict) -> None:
        super().__init__()
        self.of = of

    @torch.no_grad()
    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        said: torch.Tensor = self.of["head"](self.of["base"](rows))
        return said


# Parts of a model that are left out


class Projector(nn.Module):
    def __init__(self, what: str) -> None:
        super().__init__()
        self.what = what
        self.first, self.second, self.third = (nn.Sequential(nn.Linear(6, 6), nn.BatchNorm1d(6)) for _ in range(3))

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        rows = self.first(rows).relu()
        if self.what != "left out":
            rows = rows + (self.second(rows).detach() if self.what == "detached" else self.second(rows)).relu()
        said: torch.Tensor = self.third(rows)
        return said


class Attends(nn.Module):
    """Uses weights of a layer that it does not call, as nn.MultiheadAttention does those of its output."""

    def __init__(self) -> None:
        super().__init__()
        self.attention, self.out = nn.MultiheadAttention(6, 2, batch_first=True), nn.Linear(6, 6)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            attended, _ = self.attention(rows[:, None], rows[:, None], rows[:, None])
        said: torch.Tensor = self.out(attended[:, 0])
        return said


@pytest.mark.parametrize(
    ("make", "severity"),
    [
        (lambda: Projector("used"), None),
        (lambda: Projector("left out"), "warning"),
        (lambda: Projector("detached"), "error"),
        (lambda: torch.compile(Projector("detached"), backend="eager"), "error"),
        (Attends, "error"),
    ],
)
def test_a_part_that_is_left_out_may_be_meant(
    make: Callable[[], Any], severity: str | None, request: pytest.FixtureRequest
) -> None:
    request.addfinalizer(torch._dynamo.reset)  # where anything was compiled, nothing is watched in windows
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 6), make())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watch(raise_errors=False, must_train=False) as watched:
        for _ in range(8):
            x = torch.randn(32, 6)
            optimizer.zero_grad()
            functional.mse_loss(model(x), x.flip(1)).backward()
            optimizer.step()
    assert watched.crashed == {}
    found = {check: each.severity for check, each in watched.findings.items()}
    assert found == ({} if severity is None else {"gradients::cut-off": severity})


# Frozen batch normalisation


@pytest.mark.parametrize("held", ["all", "the head"])
@pytest.mark.parametrize("frozen", ["in train mode", "in eval mode", "for another's step"])
def test_frozen_statistics_that_drift(frozen: str, held: str) -> None:
    """Whichever tensors the optimizer holds: what is frozen it leaves alone."""

    def loop() -> None:
        body, head = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU()), nn.Linear(8, 2)
        model = nn.Sequential(body, head)
        body.requires_grad_(False)
        optimizer = torch.optim.SGD(model.parameters() if held == "all" else head.parameters(), lr=0.1)
        others = torch.optim.SGD(body.parameters(), lr=0.1)
        for _ in range(12):
            model.train()
            body.train(frozen != "in eval mode")
            for opt in (optimizer, others) if frozen == "for another's step" else (optimizer,):
                body.requires_grad_(opt is others)
                x = 2 * torch.randn(16, 6) + 1
                opt.zero_grad()
                functional.cross_entropy(model(x), (x[:, 0] > 1).long()).backward()
                opt.step()

    drifts = {"mode::frozen-norm-drifts"} if frozen == "in train mode" else set()
    assert found(loop) & {"mode::frozen-norm-drifts"} == drifts


# Lines that are not cut off at 0


class Line:
    def __init__(self, total: int, share: float) -> None:
        self.total, self.share = total, share

    def __call__(self, step: int) -> float:
        return 1 - self.share * step / self.total


def line(step: int, total: int, share: float) -> float:
    return 1 - share * step / total


TOTAL = 90


def ends() -> Iterator[tuple[str, Any, int | None]]:
    yield "to 0", lambda step: 1 - step / TOTAL, 90
    yield "to 0, with the number in it", lambda step: (60 - step) / 60, 60
    yield "to 0, of an object", Line(40, 1.0), 40
    yield "to 0, of a method", Line(40, 1.0).__call__, 40
    yield "to 0, of arguments", functools.partial(line, total=50, share=1.0), 50
    yield "to 0, after a warmup", lambda step: min((step + 1) / 10, 1.0) * (1 - step / TOTAL), 90
    yield "to a tenth", lambda step: 1 - 0.9 * step / TOTAL, None
    yield "to a tenth, beside a whole step", lambda step: 1 - 0.9 * step / 96, None
    yield "to a half, of an object", Line(40, 0.5), None
    yield "to a tenth, and no further", lambda step: max(0.1, 1 - step / TOTAL), 81
    yield (
        "a cosine",
        lambda step: (1 + math.cos(math.pi * step / 64)) / 2,
        64,
    )


@pytest.mark.parametrize(("factor", "end"), [pytest.param(f, e, id=name) for name, f, e in ends()])
def test_where_a_line_ends(factor: Any, end: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.watch.facts.schedules.keeps_nothing", lambda function: True)
    assert schedule_of(LambdaLR(torch.optim.SGD([torch.zeros(1)], lr=0.1), factor)).end == end


@pytest.mark.parametrize(("share", "steps"), [(0.9, 40), (0.5, 40), (1.0, 40), (1.0, 80)])
def test_a_line_is_as_long_as_the_training(share: float, steps: int) -> None:
    def loop() -> None:
        model, rows = nn.Linear(6, 2), TensorDataset(torch.randn(80, 6), torch.randint(2, (80,)))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        schedule = LambdaLR(optimizer, lambda step: 1 - share * step / steps)
        for _ in range(4):
            for x, y in DataLoader(rows, 8, shuffle=True):
                optimizer.zero_grad()
                functional.cross_entropy(model(x), y).backward()
                optimizer.step()
                schedule.step()

    assert found(loop) == (set() if steps == 40 else {"schedule::wrong-length"})


# A model that is called by its forward


class Inner(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 2))

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        said: torch.Tensor = self.layers(rows)
        return said


class Outer(nn.Module):
    """Calls its part by way of more helpers than a few frames."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = Inner()

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return self.handed_on(rows, 12)

    def handed_on(self, rows: torch.Tensor, times: int) -> torch.Tensor:
        if times:
            return self.handed_on(rows, times - 1)
        said: torch.Tensor = self.inner(rows)
        return said


@pytest.mark.parametrize("by", ["parameters", "named_parameters", "a list before"])
def test_a_model_is_what_was_called_by_its_forward(by: str) -> None:
    """From the first call on, where its parameters were asked for; and never one of its parts."""
    from harness.describe.page import describing

    torch.manual_seed(0)
    model = Outer()
    parameters = list(model.parameters())
    with describing() as page:
        if by == "parameters":
            parameters = list(model.parameters())
        elif by == "named_parameters":
            parameters = [each for _, each in model.named_parameters()]
        optimizer = torch.optim.SGD(parameters, lr=0.1)
        for _ in range(6):
            x = torch.randn(16, 6)
            optimizer.zero_grad()
            functional.cross_entropy(model.forward(x), (x[:, 0] > 0).long()).backward()
            optimizer.step()
    text = str(page)
    assert "Outer" in text
    assert "Inner" not in text
    assert f"{96 if by != 'a list before' else 80} different rows" in text
