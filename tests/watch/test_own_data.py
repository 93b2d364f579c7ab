"""What a script keeps its rows in is read where that calls none of its code, and draws none of its random numbers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import datasets
import pytest

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
    assert [each.observed for each in monitor.findings] == ["it is below in 32 of 32 rows"] * found
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
