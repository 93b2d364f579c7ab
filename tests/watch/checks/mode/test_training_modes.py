from __future__ import annotations

import pytest
from torch import nn

from harness.watch.checks.mode.observations.training_modes import TrainedThrough
from tests.watch.facts.small import sgd, step
from tests.watch.run.account import told
from tests.watch.run.test_evaluations import LABELS, ROWS, network


@pytest.mark.parametrize("part_trains", [True, False])
def test_a_part_may_be_in_another_mode_than_its_model(part_trains: bool) -> None:
    def loop() -> None:
        model = nn.Sequential(network().train(part_trains))
        assert model.training
        step(model, sgd(model), ROWS, LABELS)

    (fact,) = told(TrainedThrough, loop)
    assert fact.training is part_trains
