"""What is brought to the host from a device, by tensors of the CPU; tests/devices counts the transfers."""

from __future__ import annotations

import gc
from weakref import ref

import pytest
import torch
from torch import nn

from harness import catalogue
from harness.torch_objects import version
from harness.watch import checks_of, host
from harness.watch.facts import gradient_ledger
from harness.watch.facts import ledger as ledgers
from harness.watch.facts.ledger import Ledger
from harness.watch.instrument import instrumented
from harness.watch.locate import Locator
from harness.watch.monitor import Options
from harness.watch.session import Session

GIVEN = [
    torch.tensor(1),
    torch.tensor(2.5),
    torch.tensor([True, False, True]),
    torch.arange(6.0).reshape(2, 3).T,
    torch.tensor([1.5, -2.0], dtype=torch.bfloat16),
    torch.tensor([1 + 2j]),
    torch.empty(0, 3, dtype=torch.float64),
    torch.tensor([[7], [8]], dtype=torch.int8),
    torch.ones(2, requires_grad=True),
]


@pytest.mark.parametrize("way", [host.brought, host._together])
def test_tensors_come_back_as_they_are_and_in_their_order(way: object) -> None:
    assert callable(way)
    copies = way(GIVEN)
    assert [each.dtype for each in copies] == [each.dtype for each in GIVEN]
    assert [each.tolist() for each in copies] == [each.tolist() for each in GIVEN]
    assert not any(each.requires_grad for each in copies)
    copies[3].add_(1)
    assert GIVEN[3].tolist() == [[0, 3], [1, 4], [2, 5]], "a copy"


def test_nothing_of_a_loop_is_kept_when_it_is_over() -> None:
    session = Session(Options(checks_of(catalogue.checks())), Locator())
    model = nn.Linear(2, 2)
    with instrumented(session):
        nn.functional.cross_entropy(model(torch.randn(4, 2)), torch.tensor([0, 1, 0, 1])).backward()
    monitor = ref(session.first)
    del session
    gc.collect()
    assert monitor() is None


def test_a_tensor_of_inference_mode_counts_no_writes() -> None:
    with torch.inference_mode():
        made = torch.ones(2)
    assert version(made) == 0
    assert version(torch.ones(2).add_(1)) == 1


# What the ledger of gradients goes by where it does not read a device


@pytest.fixture
def ledger(monkeypatch: pytest.MonkeyPatch) -> Ledger:
    """After a backward pass, of gradients whose numbers are not at hand."""
    for module in (gradient_ledger, ledgers):
        monkeypatch.setattr(module, "_is_at_hand", lambda tensor: False)
    weight = nn.Parameter(torch.ones(2))
    weight.sum().backward()
    found = Ledger([weight], [None])
    assert not found.is_unchanged([weight.grad], looked_at=False)
    found.after, found.versions = [weight.grad.clone()], ledgers._versions([weight])  # type: ignore[union-attr]
    return found


def test_gradients_that_nothing_wrote_to_are_there_and_unchanged(ledger: Ledger) -> None:
    ledger.cleared = True  # by a call for other gradients
    assert not ledger.is_empty(looked_at=False)
    assert ledger.is_unchanged(ledger.after, looked_at=False)


def test_gradients_that_a_call_set_to_0_are_cleared(ledger: Ledger) -> None:
    (weight,) = ledger.probes
    torch.optim.SGD([weight]).zero_grad(set_to_none=False)
    assert not ledger.is_empty(looked_at=False), "no call was seen"
    ledger.cleared = True
    assert ledger.is_empty(looked_at=False)


def test_gradients_that_are_none_are_cleared_without_a_call(ledger: Ledger) -> None:
    ledger.probes[0].grad = None
    assert ledger.is_empty(looked_at=False)
    assert not ledger.is_unchanged([None], looked_at=False)


def test_gradients_that_another_backward_pass_added_to_are_changed(ledger: Ledger) -> None:
    ledger.probes[0].sum().backward()
    assert not ledger.is_unchanged(ledger.after, looked_at=False)
    assert not ledger.is_empty(looked_at=False)
