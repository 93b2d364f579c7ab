from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn

from harness.watch.check import NOTHING_TO_JUDGE, Found
from harness.watch.checks.parameters.copy_never_follows import CopyNeverFollows
from harness.watch.facts.copies import CopyOver
from tests.checks.judging import judged
from tests.watch.facts.small import sgd
from tests.watch.run.account import told

LOOP = """for mine, its in zip({}.parameters(), target.parameters()):
    its.data.copy_(0.005 * mine.data + 0.995 * its.data)
"""


@pytest.mark.parametrize(("source", "share"), [("target", 0.005), ("online", 0.005), ("online", 1e-4)])
def test_a_copy_follows_if_it_goes_further_than_rounding(source: str, share: float) -> None:
    def loop() -> None:
        online = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
        target = copy.deepcopy(online)
        optimizer = sgd(online)
        for _ in range(60):
            rows = torch.randn(8, 4)
            with torch.no_grad():
                goal = target(rows) + 1
            optimizer.zero_grad()
            (online(rows) - goal).pow(2).mean().backward()
            optimizer.step()
            followed = online if source == "online" else target
            for mine, its in zip(followed.parameters(), target.parameters(), strict=True):
                its.data.copy_(share * mine.data + (1 - share) * its.data)

    (fact,) = told(CopyOver, loop)
    assert fact.follows is (source == "online")


def test_a_network_that_is_mixed_with_itself(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    fact = CopyOver(updates=60, where=f"{script}:2")
    script.write_text(LOOP.format("online"))
    assert judged(CopyNeverFollows, fact) == NOTHING_TO_JUDGE
    script.with_name("other.py").write_text(LOOP.format("target"))
    verdict = judged(CopyNeverFollows, replace(fact, where=f"{script.with_name('other.py')}:2"))
    assert isinstance(verdict, Found)
    assert "target.parameters() twice" in verdict.observed
