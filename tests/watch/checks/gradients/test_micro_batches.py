"""What a script does to accumulated gradients by hand: dividing them once for all is one thing, clipping another."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.nn import functional

from harness.watch import watch
from harness.watch.checks.gradients.observations.micro_batches import SameRowsAdded
from tests.watch.facts.test_saved_models import Gives, rows
from tests.watch.run.account import told

Changes = Callable[[list[torch.Tensor]], None]
UNSCALED = "gradients::accumulation-unscaled"


def nothing(gradients: list[torch.Tensor]) -> None:
    pass


def clipped(gradients: list[torch.Tensor]) -> None:
    limit = 0.3 / torch.stack([each.norm() for each in gradients]).norm()
    for each in gradients:
        each.mul_(limit.clamp(max=1.0))


def clipped_at_once(gradients: list[torch.Tensor]) -> None:
    norm = torch.stack([each.norm() for each in gradients]).norm()
    torch._foreach_mul_(gradients, min(1.0, 0.3 / norm.item()))


def clipped_by_value(gradients: list[torch.Tensor]) -> None:
    for each in gradients:
        each.clamp_(-0.02, 0.02)


def rarely_clipped(gradients: list[torch.Tensor]) -> None:
    norm = float(torch.stack([each.norm() for each in gradients]).norm())
    for each in gradients if norm > 5 else ():
        each.mul_(5 / norm)


def centred(gradients: list[torch.Tensor]) -> None:
    for each in gradients:
        if each.dim() > 1:
            each.sub_(each.mean(dim=1, keepdim=True))


def divided(gradients: list[torch.Tensor]) -> None:
    for each in gradients:
        each.div_(4)


def divided_by_sixteen(gradients: list[torch.Tensor]) -> None:
    for each in gradients:
        each.mul_(1 / 16)


def found(change: Changes, divisor: int, *, clips: bool = False, scaler: bool = False) -> dict[str, str]:
    """What is found in a loop whose updates add up four micro-batches, by check."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    scales = torch.amp.GradScaler("cpu", enabled=scaler)
    with watch(raise_errors=False, must_train=False) as watched:
        for _ in range(8):
            for _ in range(4):
                rows = torch.randn(8, 8)
                scales.scale(functional.mse_loss(model(rows), 3 * rows.sum(dim=1, keepdim=True)) / divisor).backward()
            scales.unscale_(optimizer)
            change([p.grad for p in model.parameters() if p.grad is not None])
            if clips:
                nn.utils.clip_grad_norm_(model.parameters(), 0.3)
            scales.step(optimizer)
            scales.update()
            optimizer.zero_grad()
    assert watched.crashed == {}
    return {check: each.observed for check, each in watched.findings.items()}


BY_HAND = [clipped, clipped_at_once, clipped_by_value, rarely_clipped, centred]


@pytest.mark.parametrize("change", [nothing, *BY_HAND])
def test_divided_losses_whatever_becomes_of_the_gradients(change: Changes) -> None:
    assert found(change, 4) == {}


@pytest.mark.parametrize("change", [nothing, *BY_HAND])
def test_undivided_losses_whatever_becomes_of_the_gradients(change: Changes) -> None:
    said = "no loss is divided, so the gradients are 4 times those of the mean loss"
    assert found(change, 1) == {UNSCALED: said}


@pytest.mark.parametrize("clips", [False, True])
@pytest.mark.parametrize("scaler", [False, True])
def test_gradients_that_are_divided_by_hand(clips: bool, scaler: bool) -> None:
    assert found(divided, 1, clips=clips, scaler=scaler) == {}
    said = "each loss is divided by 4, so the gradients are 0.25 times those of the mean loss"
    assert found(divided, 4, clips=clips, scaler=scaler) == {UNSCALED: said}


def test_gradients_that_are_divided_by_another_number() -> None:
    said = "no loss is divided, so the gradients are 0.25 times those of the mean loss"
    assert found(divided_by_sixteen, 1) == {UNSCALED: said}


@pytest.mark.parametrize("divisor", [1, 4])
def test_a_scaler_divides_its_own_factor_only(divisor: int) -> None:
    assert set(found(nothing, divisor, scaler=True)) == ({UNSCALED} if divisor == 1 else set())


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


def accumulated(micro_batches: Callable[[int], list[torch.Tensor]], updates: int = 8) -> list[SameRowsAdded]:
    """What is told of a loop whose update number ``i`` adds up ``micro_batches(i)``."""

    def loop() -> None:
        model = nn.Linear(4, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for update in range(updates):
            optimizer.zero_grad()
            for each in micro_batches(update):
                model(each).pow(2).mean().backward()
            optimizer.step()

    return told(SameRowsAdded, loop)


def test_rows_of_the_same_sum_are_not_the_same() -> None:
    rows = torch.tensor([[1.0, 0, 0, 1], [0, 1, 1, 0]])
    swapped = [rows, rows.flip(1), rows[:, [0, 2, 1, 3]].roll(1, 1)]
    assert accumulated(lambda update: swapped) == []


def test_a_loop_around_one_batch_has_the_same_rows_in_all_of_its_updates() -> None:
    rows = torch.randn(16, 4, 4)
    assert [fact.updates for fact in accumulated(lambda update: 2 * [rows[update]])] == [*range(1, 9)]
    now_and_then = accumulated(lambda update: [rows[update], rows[update] + (update % 4 == 1)])
    assert [fact.updates for fact in now_and_then] == [1]
