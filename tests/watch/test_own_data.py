"""What a script keeps its rows in is read where that calls none of its code, and draws none of its random numbers."""

from __future__ import annotations

import importlib
from types import SimpleNamespace
from typing import Any

import datasets
import pytest
import torch

from harness.watch import watch
from harness.watch.checks.inputs.classes import PreferenceSwapped
from harness.watch.events import TrainerMade
from harness.watch.facts.datasets import row_hashes, stored_rows
from harness.watch.locate import Locator
from harness.watch.monitor import Monitor, Options

ROWS = [{"chosen": "a", "rejected": "b", "chosen_score": 1.0, "rejected_score": 2.0 + row} for row in range(32)]


class OwnRows:
    """A dataset that draws what it gives."""

    def __init__(self) -> None:
        self.rows: Any = ROWS
        self.drawn: list[int] = []

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> Any:
        self.drawn.append(index)
        return self.rows[index]


class OwnList(list[Any]):
    def __getitem__(self, index: Any) -> Any:
        raise AssertionError("somebody draws a row")

    def __iter__(self) -> Any:
        raise AssertionError("somebody draws rows")


def not_drawn(rows: Any) -> Any:
    raise AssertionError("somebody transforms rows")


def transformed() -> Any:
    return datasets.Dataset.from_list(ROWS).with_transform(not_drawn)


@pytest.mark.parametrize(
    ("dataset", "found"), [(ROWS, True), (transformed(), True), (OwnRows(), False), (OwnList(ROWS), False)]
)
def test_scores_are_read_where_they_lie(dataset: Any, found: bool) -> None:
    monitor = Monitor(Options(checks=(PreferenceSwapped,)), Locator())
    monitor.emit(TrainerMade(SimpleNamespace(train_dataset=dataset), "train.py:1"))
    assert [each.observed for each in monitor.findings] == [
        "chosen_score is below rejected_score in 32 of 32 rows"
    ] * found
    assert not monitor.crashed
    assert not getattr(dataset, "drawn", ())


def test_rows_are_compared_where_they_lie() -> None:
    hashes = row_hashes(transformed())
    assert hashes is not None
    assert len(set(hashes)) == 32
    assert row_hashes(OwnList(ROWS)) is row_hashes(OwnRows()) is None
    assert stored_rows(SimpleNamespace(kept=OwnList(ROWS), __len__=lambda: 32), range(4)) == 0
    wrapped = OwnRows()
    wrapped.rows = transformed()
    assert stored_rows(wrapped, range(4)) == 4


def test_a_module_that_is_built_in_holds_no_rows() -> None:
    sys = importlib.import_module("sys")  # a variable of the loop's function, as after `import sys`
    rows, labels, model = torch.randn(64, 3), torch.randint(2, (64,)), torch.nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watch(raise_errors=False) as watched:
        for _ in range(3):
            model.zero_grad()
            torch.nn.functional.cross_entropy(model(rows[:32]), labels[:32]).backward()
            optimizer.step()
            with torch.no_grad():
                assert torch.nn.functional.cross_entropy(model(rows[32:]), labels[32:]).item() < sys.maxsize
    assert not watched.crashed
