"""Moments of the rows that a model is given, by hand: what is judged, and that what is not needed is let go."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import nn

from harness.watch.checks.inputs.evaluated import EvaluatedOnAnotherScale, StandardisedApart
from harness.watch.checks.inputs.observations.evaluated_rows import EvaluatedMoments
from harness.watch.events import Backward, BackwardBegins, Forward, Scored
from harness.watch.locate import Locator
from harness.watch.monitor import Monitor, Options


class Loop:
    """A training without an optimizer, told to one check."""

    def __init__(self, check: Any) -> None:
        self.monitor, self.model, self.number = Monitor(Options(checks=(check,)), Locator()), nn.Linear(4, 1), 0
        (self.check,) = self.monitor.checks

    def forward(self, rows: torch.Tensor) -> Forward:
        self.number += 1
        return Forward(self.number, self.model, (rows,), {}, torch.zeros(len(rows), 1), where="train.py:1")

    def train(self, rows: torch.Tensor) -> None:
        forward = replace(self.forward(rows), gradients=True)
        reached = frozenset({forward.number})
        told: dict[str, Any] = {"number": 1, "root": torch.zeros(()), "scale": 1.0, "forwards": [forward]}
        self.monitor.emit(BackwardBegins(**told))
        self.monitor.emit(Backward(**told, reached=reached))
        self.monitor.updates_made += 1

    def evaluate(self, rows: torch.Tensor) -> None:
        forward = self.forward(rows)
        self.monitor.forwards = [forward]
        self.monitor.emit(forward)
        self.monitor.emit(Scored(forward, None, None, None))

    def end(self) -> list[str]:
        self.monitor.ends()
        return [each.observed for each in self.monitor.findings]


@pytest.mark.parametrize("rows", [16, 64])
def test_columns_are_compared_however_the_evaluation_is_batched(rows: int) -> None:
    loop = Loop(EvaluatedOnAnotherScale)
    for _ in range(8):
        loop.train(torch.randn(64, 4))
    for _ in range(128 // rows):
        loop.evaluate(torch.randn(rows, 4) + 7)
    (observed,) = loop.end()
    assert observed.startswith("4 of 4 input columns")


def test_what_was_evaluated_after_one_update_is_judged_and_let_go() -> None:
    loop = Loop(StandardisedApart)
    for _ in range(100):
        loop.train(torch.randn(8, 4))
        loop.evaluate(torch.randn(1, 4))
    assert len(loop.monitor.fact(EvaluatedMoments)._evaluated) == 1
    assert not loop.check.looked, "one row has no moments of its own"
    rows = torch.randn(40, 4)
    loop.evaluate((rows - rows.mean(0)) / rows.std(0))
    loop.train(torch.randn(8, 4))
    loop.evaluate(torch.randn(40, 4))
    (observed,) = loop.end()
    assert observed.startswith("each of 4 columns has mean 0")
