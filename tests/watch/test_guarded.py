"""What the watch puts on something of the script's, or asks of what the script gave, harms nothing."""

from __future__ import annotations

import time
from typing import Any, cast

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from harness.watch import watch
from harness.watch.bus import OutcomeListener
from harness.watch.checks.metrics.observations.metric_calls import is_stretch
from harness.watch.events import Batch
from harness.watch.instrument import instrumented
from harness.watch.locate import Locator
from harness.watch.monitor import Monitor, Options
from harness.watch.session import Session


def test_a_hook_that_raises_ends_no_backward_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """``is_grads_batched=True`` gives hooks gradients without values."""
    model = nn.Linear(4, 3)
    rows, test_mask = torch.randn(16, 4), torch.arange(16) < 4
    with watch(raise_errors=False, must_train=False) as watched:
        said = model(rows)
        said[test_mask].sum().backward(retain_graph=True)
        identity = torch.eye(16 * 3).reshape(48, 16, 3)
        (found,) = torch.autograd.grad(said, model.bias, identity, is_grads_batched=True)
    assert found.shape == (48, 3)
    assert set(watched.crashed) <= {"rows::test-rows-in-loss"}


class Batches(OutcomeListener):
    id = "batches"

    def __init__(self, monitor: Monitor) -> None:
        self.indices: list[Any] = []

    def on_batch(self, event: Batch) -> None:
        self.indices.append(event.indices)


@pytest.mark.parametrize("in_order", [True, False])
def test_batches_of_workers_that_may_overtake_each_other_have_no_places(in_order: bool) -> None:
    threads, rows = Session(Options(checks=(Batches,)), Locator()), cast("Dataset[Any]", torch.arange(8))
    with instrumented(threads):
        for _ in DataLoader(rows, batch_size=4, num_workers=2, in_order=in_order):
            pass
    (batches,) = threads.first.checks
    assert isinstance(batches, Batches)
    assert batches.indices == ([[0, 1, 2, 3], [4, 5, 6, 7]] if in_order else [None, None])


def test_stretches_of_many_labels() -> None:
    whole = [number % 7 % 2 for number in range(200_000)]
    began = time.perf_counter()
    assert not is_stretch([*whole[:100_000], 1, 1, 1], whole)
    assert is_stretch(whole[50_000:150_000], whole)
    assert time.perf_counter() - began < 5
    assert not is_stretch([], whole)
    assert not is_stretch([2], whole)
