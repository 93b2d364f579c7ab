"""Batches that are counted where their tensors are: nothing is read before somebody asks, and then together."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
import torch
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode

from harness.watch import host
from harness.watch.facts import counted_batches
from harness.watch.facts.counted_batches import CountedBatch, confusion_of, products_of_ones, read

WAITS = ("_local_scalar_dense", "nonzero", "bincount")
"""What makes the CPU wait for a GPU."""


class Calls(TorchDispatchMode):
    """Counts the operators that are called."""

    def __init__(self) -> None:
        super().__init__()
        self.counts = Counter[str]()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.counts[func.overloadpacket.__name__] += 1
        return func(*args, **(kwargs or {}))


def labelled(kind: str, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
    """What a model says, the labels, and its own loss."""
    torch.manual_seed(seed)
    if kind == "classes":
        return torch.randn(9, 7), torch.randint(7, (9,)), None
    if kind == "regression":
        return torch.randn(9, 1), torch.randn(9), None
    if kind == "tokens":
        said, labels = torch.randn(3, 5, 4), torch.randint(4, (3, 5))
        labels[0, :2] = -100
        return said, labels, functional.cross_entropy(said[:, :-1].reshape(-1, 4), labels[:, 1:].reshape(-1))
    said = torch.randn(9) if kind == "logits" else torch.rand(9)
    return said, torch.randint(2, (9,)).float(), None


KINDS = ["classes", "regression", "tokens", "logits", "probabilities"]


@pytest.mark.parametrize("kind", KINDS)
def test_nobody_waits_for_a_batch_that_is_counted(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counted_batches, "confusion_of", products_of_ones)  # as on a GPU
    given = labelled(kind)
    batch = CountedBatch()
    with Calls() as calls:
        batch.count(*given)
    assert calls.counts
    assert not [each for each in WAITS if calls.counts[each]]


@pytest.mark.parametrize("kind", KINDS)
def test_batches_are_read_together(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counted_batches, "brought", host._together)  # as from a GPU
    batches = [CountedBatch() for _ in range(40)]
    for seed, each in enumerate(batches):
        each.count(*labelled(kind, seed))
    with Calls() as calls:
        together = read(batches)
    assert calls.counts["cat"] == 1, "in one transfer"
    alone = [part for each in batches for part in read([each])]
    assert [(each.hits, each.squares, each.targets) for each in together] == [
        (each.hits, each.squares, each.targets) for each in alone
    ]


def test_which_way_a_batch_is_counted_its_numbers_say() -> None:
    found = {kind: labelled(kind) for kind in KINDS}
    parts = {}
    for kind, given in found.items():
        batch = CountedBatch()
        batch.count(*given)
        (parts[kind],) = read([batch])
    said, true, _ = found["classes"]
    assert parts["classes"].hits == int((said.argmax(1) == true).sum())
    assert parts["classes"].among_five is not None
    said, true, _ = found["regression"]
    assert parts["regression"].hits is None
    assert parts["regression"].squares == pytest.approx((said[:, 0] - true).square().sum().item())
    said, true, _ = found["tokens"]
    assert (parts["tokens"].targets, parts["tokens"].places) == (int((true[:, 1:] != -100).sum()), 15)
    assert set(parts["tokens"].otherwise) == {"own-place", "own-place-but-first"}
    for kind, threshold in (("logits", 0.0), ("probabilities", 0.5)):
        said, true, _ = found[kind]
        assert parts[kind].hits == int(((said > threshold) == true).sum())
        assert parts[kind].squares is None
    assert list(parts["logits"].otherwise) == ["threshold-of-probabilities"]
    assert not parts["probabilities"].otherwise


def test_labels_that_are_no_classes_have_no_confusion() -> None:
    batch = CountedBatch()
    batch.count(torch.randn(4, 3), torch.tensor([0, 1, 2, 3]))
    (part,) = read([batch])
    assert (part.targets, part.confusion) == (4, None)


@pytest.mark.parametrize("autocast", [False, True])
def test_products_of_ones_count_as_bincount_does(autocast: bool) -> None:
    torch.manual_seed(0)
    taken, true = torch.zeros(12001, dtype=torch.long), torch.zeros(12001, dtype=torch.long)
    taken[:3000], true[:3000] = torch.randint(5, (3000,)), torch.randint(5, (3000,))
    true[::7] = -100
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        counted = products_of_ones(taken, true, true >= 0, 5, rows=5000)
    assert torch.equal(counted, confusion_of(taken, true, true >= 0, 5))
