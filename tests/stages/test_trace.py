"""The trace sees what happens, and leaves nothing behind."""

from __future__ import annotations

import copy
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

from harness.digests import digests_of, joined, torch_states
from harness.documented_run.metrics import load_metric
from harness.documented_run.stages.trace import TOGETHER, Trace, _norm, row_key


class Toy(nn.Module):
    """Two classes from the mean id."""

    def __init__(self) -> None:
        super().__init__()
        self.used = nn.Linear(1, 2)
        self.unused = nn.Linear(1, 1)

    def forward(self, input_ids: torch.Tensor, labels: torch.Tensor, attention_mask: torch.Tensor) -> Any:
        logits = self.used(input_ids.float().mean(dim=1, keepdim=True))
        return SimpleNamespace(logits=logits, loss=nn.functional.cross_entropy(logits, labels))


BATCH = {
    "input_ids": torch.tensor([[1, 2, 0], [3, 4, 5]]),
    "attention_mask": torch.tensor([[1, 1, 0], [1, 1, 1]]),
    "labels": torch.tensor([0, 1]),
}


def train(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    updates: int,
    *,
    reset: bool = True,
    batch: dict[str, torch.Tensor] = BATCH,
) -> None:
    for _ in range(updates):
        model(**batch).loss.backward()
        optimizer.step()
        if reset:
            optimizer.zero_grad()


def test_records_forwards_and_updates() -> None:
    model = Toy()
    optimizer = torch.optim.SGD(model.used.parameters(), lr=0.5)
    with Trace(model, optimizer) as trace:
        train(model, optimizer, 3)
    assert [forward.update for forward in trace.forwards] == [1, 2, 3]
    assert [update.update for update in trace.updates] == [1, 2, 3]
    first = trace.forwards[0]
    assert (first.training, first.evaluating, first.gradients) == (True, False, True)
    assert first.rows == (row_key([1, 2], 0), row_key([3, 4, 5], 1))
    assert first.devices == ("cpu",)
    assert trace.updates[0].lr == 0.5
    assert trace.updates[0].missing == ("unused.weight", "unused.bias")
    assert trace.unchanged == {}


def test_rows_are_those_of_the_forward_whatever_becomes_of_the_batch() -> None:
    """Rows and random states are read some updates later, by when the loop has filled its batch with others."""
    model, batch = Toy(), {name: tensor.clone() for name, tensor in BATCH.items()}
    optimizer = torch.optim.SGD(model.used.parameters(), lr=0.5)
    random, updates = [], TOGETHER + 3
    with Trace(model, optimizer, digests=True) as trace:
        for update in range(updates):
            batch["input_ids"][1] = torch.tensor([update, 7, 8])
            random.append(joined(digests_of(torch_states()).values()))
            train(model, optimizer, 1, batch=batch)
            batch["input_ids"].zero_()
            torch.rand(1)
        assert len(trace._unread) < TOGETHER
    assert trace._unread == []
    assert [each.rows[1] for each in trace.forwards] == [row_key([update, 7, 8], 1) for update in range(updates)]
    assert [each.random for each in trace.updates] == random


@pytest.mark.parametrize("kinds", [1, 2])
def test_gradient_norm_is_torchs_own_to_the_bit(kinds: int) -> None:
    gradients = [torch.rand(8, 3), torch.rand(5).to(torch.float64 if kinds == 2 else torch.float32), torch.rand(())]
    assert _norm(gradients) == nn.utils.get_total_norm(gradients).item()


def test_gradient_norm_is_that_of_the_step() -> None:
    model = Toy()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    with Trace(model, optimizer) as trace:
        model(**BATCH).loss.backward()
        expected = nn.utils.clip_grad_norm_(model.parameters(), 1e9).item()
        optimizer.step()
    assert trace.updates[0].grad_norm == pytest.approx(expected, rel=1e-6)


def test_digests_tell_where_two_trainings_part() -> None:
    """Update 3 has other rows: random states, and each tensor in updates 1, 2 and 4, tell them apart from there on."""

    def trained(*, other_rows: bool = False, draws: bool = False) -> Trace:
        torch.manual_seed(0)
        model = Toy()
        optimizer = torch.optim.SGD(model.used.parameters(), lr=0.5)
        with Trace(model, optimizer, digests=True) as trace:
            train(model, optimizer, 2)
            if draws:
                torch.rand(1)
            train(model, optimizer, 1, batch=BATCH | {"labels": torch.tensor([1, 1])} if other_rows else BATCH)
            train(model, optimizer, 2)
        return trace

    one, other = trained(), trained(other_rows=True)
    assert list(one.tensors) == [1, 2, 4]
    assert (one.tensors, [each.random for each in one.updates]) == (trained().tensors, [one.updates[0].random] * 5)
    assert [at for at in one.tensors if one.tensors[at] != other.tensors[at]] == [4]
    weights, gradients = one.tensors[4]
    assert {name for name in weights if weights[name] != other.tensors[4][0][name]} == {"used.weight", "used.bias"}
    assert set(gradients) == {"used.weight", "used.bias"}
    drawn = [each.random for each in trained(draws=True).updates]
    assert [each == one.updates[0].random for each in drawn] == [True, True, False, False, False]


def test_sees_gradients_left_over() -> None:
    model = Toy()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with Trace(model, optimizer) as trace:
        train(model, optimizer, 2, reset=False)
    assert trace.backwards[0].left_over == 0
    assert trace.backwards[1].left_over > 0


def test_reset_just_before_the_backward_is_a_reset() -> None:
    model = Toy()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with Trace(model, optimizer) as trace:
        for _ in range(3):
            loss = model(**BATCH).loss
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    assert [backward.left_over for backward in trace.backwards] == [0.0] * 3


def test_sees_parameters_that_do_not_change() -> None:
    model = Toy()
    optimizer = torch.optim.SGD(copy.deepcopy(model).parameters(), lr=0.1)
    with Trace(model, optimizer) as trace:
        train(model, optimizer, 1)
    assert trace.unchanged == {1: ["used.bias", "used.weight"]}


def test_an_update_at_lr_0_may_change_nothing() -> None:
    model = Toy()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    with Trace(model, optimizer) as trace:
        train(model, optimizer, 1)
        optimizer.param_groups[0]["lr"] = 0.1
        train(model, optimizer, 2)
    assert trace.unchanged == {}


def test_an_optimizer_that_stops_is_seen() -> None:
    model = Toy()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with Trace(model, optimizer) as trace:
        train(model, optimizer, 3)
        optimizer.param_groups[0]["params"] = []
        train(model, optimizer, 20, reset=False)
    assert trace.unchanged
    assert min(trace.unchanged) > 3


def test_sees_mode_and_gradients_of_an_evaluation() -> None:
    model = Toy().eval()
    with Trace(model) as trace, torch.no_grad():
        model(**BATCH)
    (forward,) = trace.forwards
    assert (forward.training, forward.evaluating, forward.gradients) == (False, True, False)
    assert forward.predictions == tuple(model(**BATCH).logits.argmax(dim=-1).tolist())


def test_one_module_in_another_mode_is_seen() -> None:
    model = Toy()
    model.unused.eval()
    with Trace(model) as trace:
        model(**BATCH)
    assert (trace.forwards[0].training, trace.forwards[0].evaluating) == (False, False)


def test_sees_what_the_metric_gets() -> None:
    metric = load_metric()
    with Trace(Toy(), metric=metric) as trace:
        metric.add_batch(predictions=torch.tensor([0, 1]), references=torch.tensor([1, 1]))
    assert trace.metric_batches[0].predictions == (0, 1)
    assert metric.compute()["accuracy"] == 0.5
    metric.add_batch(predictions=[1], references=[1])
    assert len(trace.metric_batches) == 1


def test_leaves_no_hook_behind() -> None:
    model = Toy()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with pytest.raises(KeyboardInterrupt), Trace(model, optimizer) as trace:
        raise KeyboardInterrupt
    train(model, optimizer, 1)
    assert trace.events == []
    assert not model._forward_hooks
    assert not model._forward_pre_hooks
