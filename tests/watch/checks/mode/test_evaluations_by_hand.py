from __future__ import annotations

from contextlib import nullcontext

import pytest
import torch
from torch.nn import functional

from harness.watch.checks.mode.observations.evaluations_by_hand import EvaluatedByHand
from tests.watch.facts.small import sgd, step
from tests.watch.run.account import told
from tests.watch.run.test_evaluations import HELD_OUT, LABELS, ROWS, THEIR_LABELS, network


@pytest.mark.parametrize("graph", [False, True])
@pytest.mark.parametrize("rounds", [1, 2])
def test_an_evaluation_is_one_with_and_without_a_graph(graph: bool, rounds: int) -> None:
    """Who forgets eval() forgets no_grad(), too."""

    def loop() -> None:
        model = network()
        optimizer = sgd(model)
        for _ in range(rounds):
            step(model, optimizer, ROWS, LABELS)
            with nullcontext() if graph else torch.no_grad():
                (model(HELD_OUT).argmax(1) == THEIR_LABELS).float().mean()

    (fact,) = told(EvaluatedByHand, loop)
    assert (fact.first.gradients, fact.first.active, fact.often) == (graph, 1, rounds > 1)


def test_a_loss_that_nobody_differentiates_of_rows_that_are_trained_on_is_none() -> None:
    def loop() -> None:
        model = network()
        optimizer = sgd(model)
        for _ in range(3):
            step(model, optimizer, ROWS, LABELS)
        functional.cross_entropy(model(ROWS), LABELS)

    assert told(EvaluatedByHand, loop) == []
