"""Updates that a loop makes without an optimizer of torch, and what is none."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable

import pytest
import torch
from torch import nn
from torch.nn import functional

from harness.watch import watch
from harness.watch.session import Session

UPDATES = 6


class Momentum:
    """An optimizer of one's own, derived from nothing."""

    def __init__(self, parameters: Iterable[torch.Tensor]) -> None:
        self.parameters = list(parameters)
        self.moments = [torch.zeros_like(p) for p in self.parameters]

    def clear(self) -> None:
        for p in self.parameters:
            p.grad = None

    @torch.no_grad()
    def step(self) -> None:
        for p, moment in zip(self.parameters, self.moments, strict=True):
            assert p.grad is not None
            moment.mul_(0.9).add_(p.grad)
            p -= 0.05 * moment


@torch.no_grad()
def subtracted(parameters: Iterable[torch.Tensor]) -> None:
    for p in parameters:
        p.sub_(0.1 * gradient(p))


def through_data(parameters: Iterable[torch.Tensor]) -> None:
    for p in parameters:
        p.data.add_(gradient(p), alpha=-0.1)


def data_set(parameters: Iterable[torch.Tensor]) -> None:
    for p in parameters:
        p.data = p.data - 0.1 * gradient(p)


@torch.no_grad()
def copied(parameters: Iterable[torch.Tensor]) -> None:
    for p in parameters:
        p.copy_(p - 0.1 * gradient(p))


def gradient(p: torch.Tensor) -> torch.Tensor:
    assert p.grad is not None
    return p.grad


def classifier() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))


def loss_of(model: nn.Module) -> torch.Tensor:
    inputs = torch.randn(16, 8)
    return functional.cross_entropy(model(inputs), (inputs[:, 0] > 0).long())


def watched(loop: Callable[[], object]) -> Session:
    with watch(raise_errors=False, must_train=False) as session:
        loop()
    assert session.crashed == {}
    return session


@pytest.mark.parametrize("update", [subtracted, through_data, data_set, copied])
@pytest.mark.parametrize("clears", [True, False])
def test_a_function_that_updates(update: Callable[[Iterable[torch.Tensor]], None], clears: bool) -> None:
    def loop() -> None:
        model = classifier()
        for _ in range(UPDATES):
            loss_of(model).backward()
            update(model.parameters())
            for p in model.parameters() if clears else ():
                p.grad = None

    session = watched(loop)
    assert set(session.findings) == (set() if clears else {"gradients::not-cleared"})
    assert session.updates_made == UPDATES


@pytest.mark.parametrize("divisor", [4, 1])
def test_a_class_that_updates(divisor: int) -> None:
    def loop() -> None:
        model = classifier()
        optimizer = Momentum(model.parameters())
        for _ in range(UPDATES):
            optimizer.clear()
            for _ in range(4):
                (loss_of(model) / divisor).backward()
            optimizer.step()

    session = watched(loop)
    assert set(session.findings) == (set() if divisor == 4 else {"gradients::accumulation-unscaled"})
    assert session.updates_made == UPDATES
    assert any("without an optimizer of torch" in note for note in session.notes)


def test_gradients_that_are_given_to_the_script() -> None:
    def loop() -> None:
        model = classifier()
        for _ in range(UPDATES):
            gradients = torch.autograd.grad(loss_of(model), list(model.parameters()))
            with torch.no_grad():
                for p, each in zip(model.parameters(), gradients, strict=True):
                    p.sub_(0.1 * each)

    session = watched(loop)
    assert session.findings == {}
    assert session.updates_made == UPDATES


def test_optimizers_that_share_one_loss_make_one_update() -> None:
    def loop(divisor: int) -> None:
        model = classifier()
        matrices = torch.optim.SGD([p for p in model.parameters() if p.dim() > 1], lr=0.1)
        vectors = torch.optim.AdamW([p for p in model.parameters() if p.dim() == 1], lr=0.01)
        for _ in range(UPDATES):
            matrices.zero_grad()
            vectors.zero_grad()
            for _ in range(4):
                (loss_of(model) / divisor).backward()
            matrices.step()
            vectors.step()

    assert watched(lambda: loop(4)).findings == {}
    session = watched(lambda: loop(1))
    assert set(session.findings) == {"gradients::accumulation-unscaled"}
    assert session.updates_made == UPDATES


def follows(model: nn.Module, average: nn.Module) -> None:
    with torch.no_grad():
        for mine, its in zip(average.parameters(), model.parameters(), strict=True):
            mine.lerp_(its, 0.1)


class OwnAdam(Momentum):
    """By which exponent's powers the two moments are corrected, and which decay rates they have."""

    def __init__(self, parameters: Iterable[torch.Tensor], one: float, other: float) -> None:
        super().__init__(parameters)
        self.squares, self.steps, self.powers = [torch.zeros_like(p) for p in self.parameters], 0, (one, other)

    @torch.no_grad()
    def step(self) -> None:
        self.steps += 1
        for p, first, second in zip(self.parameters, self.moments, self.squares, strict=True):
            first.mul_(0.9).add_(gradient(p), alpha=0.1)
            second.mul_(0.99).addcmul_(gradient(p), gradient(p), value=0.01)
            one, other = (1 - power**self.steps for power in self.powers)
            p.addcdiv_(first / one, (second / other).sqrt() + 1e-8, value=-0.01)


class Bert(OwnAdam):
    """A class that is called after no optimizer may leave the correction out on purpose."""


@pytest.mark.parametrize(
    ("kind", "powers", "fault"),
    [
        (OwnAdam, (0.9, 0.99), None),
        (OwnAdam, (0.0, 0.0), "the moments are not corrected"),
        (OwnAdam, (0.9, 0.9), "the second moment is corrected by the first one's"),
        (OwnAdam, (0.9, 0.0), "the second moment is not corrected"),
        (Bert, (0.0, 0.99), "the first moment is not corrected"),
        (Bert, (0.0, 0.0), None),
    ],
)
def test_an_adam_of_ones_own(kind: type[OwnAdam], powers: tuple[float, float], fault: str | None) -> None:
    def loop() -> None:
        model = classifier()
        optimizer = kind(model.parameters(), *powers)
        for _ in range(UPDATES):
            optimizer.clear()
            loss_of(model).backward()
            optimizer.step()

    findings = watched(loop).findings
    assert set(findings) == (set() if fault is None else {"update::not-as-defined"})
    if fault is not None:
        assert fault in findings["update::not-as-defined"].observed


def with_an_average() -> None:
    """The optimizer of torch makes the updates; what the script writes besides is none."""
    model = classifier()
    average, optimizer = copy.deepcopy(model), torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(UPDATES):
        optimizer.zero_grad()
        loss_of(model).backward()
        optimizer.step()
        follows(model, average)


def an_attack() -> None:
    """Rows are moved by their gradients, and no model is."""
    model, moved = classifier().requires_grad_(False), torch.zeros(16, 8, requires_grad=True)
    for _ in range(UPDATES):
        functional.cross_entropy(model(torch.ones(16, 8) + moved), torch.zeros(16, dtype=torch.long)).backward()
        with torch.no_grad():
            moved += 0.1 * gradient(moved).sign()
        moved.grad = None


@pytest.mark.parametrize("loop", [with_an_average, an_attack])
def test_what_else_is_written(loop: Callable[[], None]) -> None:
    session = watched(loop)
    assert session.findings == {}
    assert session.updates_made == UPDATES


def test_tensors_are_as_they_were_afterwards() -> None:
    before = {name: vars(torch.Tensor).get(name) for name in ("data", "add_", "copy_")}
    watched(lambda: through_data([]))
    assert {name: vars(torch.Tensor).get(name) for name in before} == before
