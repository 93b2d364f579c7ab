from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

from harness.watch.bounded import MOST
from harness.watch.monitor import Monitor
from harness.watch.run.evaluations import MOST_CALLS, MOST_ROWS, Evaluation, Evaluations, FirstCall
from harness.watch.run.rows import exact
from tests.watch.facts.small import sgd, step
from tests.watch.run.account import told, watched

ROWS, LABELS = torch.arange(64.0).reshape(16, 4) / 64, torch.arange(16) % 2
HELD_OUT, THEIR_LABELS = ROWS + 7, LABELS


def network() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 2))


def trained_and(evaluate: Callable[[nn.Module], object], rounds: int = 1) -> list[Evaluation]:
    """The evaluations of a training that evaluates after each of its epochs."""

    def loop() -> None:
        model = network()
        optimizer = sgd(model)
        for _ in range(rounds):
            for rows, labels in DataLoader(TensorDataset(ROWS, LABELS), batch_size=8):
                step(model.train(), optimizer, rows, labels)
            evaluate(model)

    return told(Evaluation, loop)


def held_out(batch_size: int = 4) -> DataLoader[tuple[torch.Tensor, ...]]:
    return DataLoader(TensorDataset(HELD_OUT, THEIR_LABELS), batch_size=batch_size)


@torch.no_grad()
def over_a_loader(model: nn.Module) -> None:
    model.eval()
    for rows, labels in held_out():
        functional.cross_entropy(model(rows), labels)


@torch.no_grad()
def of_a_tensor(model: nn.Module) -> None:
    (model.eval()(HELD_OUT).argmax(1) == THEIR_LABELS).float().mean()


@torch.no_grad()
def one_by_one(model: nn.Module) -> None:
    model.eval()
    for row, label in zip(HELD_OUT, THEIR_LABELS, strict=True):
        functional.cross_entropy(model(row[None]), label[None])


def with_a_graph(model: nn.Module) -> None:
    (model.eval()(HELD_OUT).argmax(1) == THEIR_LABELS).float().mean()


@pytest.mark.parametrize(
    ("evaluate", "calls", "graph"),
    [(over_a_loader, 4, False), (of_a_tensor, 1, False), (one_by_one, 16, False), (with_a_graph, 1, True)],
)
def test_an_evaluation_is_the_same_whatever_feeds_it(
    evaluate: Callable[[nn.Module], object], calls: int, graph: bool
) -> None:
    first, second = trained_and(evaluate, rounds=2)
    assert (first.update, second.update) == (2, 4)
    assert (first.calls, first.scored, first.by_row) == (calls, True, False)
    assert (first.first.training, first.first.active, first.first.gradients) == (False, 0, graph)
    assert first.rows == second.rows == frozenset(exact(HELD_OUT))
    assert (first.of is not None) is (evaluate is over_a_loader)
    assert first.where is not None
    assert first.where == first.first.where == second.where


def test_a_method_that_calls_the_parts_of_its_model_evaluates_them_all() -> None:
    def loop() -> None:
        body, head = nn.Linear(4, 8), nn.Linear(8, 2)
        optimizer = sgd(nn.Sequential(body, head))
        for rows, labels in DataLoader(TensorDataset(ROWS, LABELS), batch_size=8):
            optimizer.zero_grad()
            functional.cross_entropy(head(body(rows).relu()), labels).backward()
            optimizer.step()
        with torch.no_grad():
            hidden = body(HELD_OUT).relu()
            (head(hidden).argmax(1) == THEIR_LABELS).float().mean()

    of_body, of_head = told(Evaluation, loop)
    assert (of_body.scored, of_head.scored) == (True, True)
    assert of_body.rows == frozenset(exact(HELD_OUT))


def test_one_is_not_over_before_its_pass_is() -> None:
    """Calls of two passes that follow on one another are two evaluations."""
    first, second = trained_and(lambda model: (over_a_loader(model), over_a_loader(model)))
    assert first.of is not second.of
    assert (first.alike, second.alike) == (1, 1)  # of two datasets


def test_the_updates_themselves_are_none() -> None:
    assert trained_and(lambda model: None, rounds=2) == []


def test_one_within_a_pass_that_trains() -> None:
    """After each update: the pass at hand is that of the training, of which its rows are none."""

    def loop() -> None:
        model = network()
        optimizer = sgd(model)
        for rows, labels in DataLoader(TensorDataset(ROWS, LABELS), batch_size=8):
            step(model.train(), optimizer, rows, labels)
            of_a_tensor(model)

    found = told(Evaluation, loop)
    assert [(each.of, each.update, each.rows) for each in found] == [
        (None, made, frozenset(exact(HELD_OUT))) for made in (1, 2)
    ]


def test_a_pass_over_rows_that_are_trained_on_says_so() -> None:
    def loop() -> None:
        model, loader = network(), DataLoader(TensorDataset(ROWS, LABELS), batch_size=8)
        optimizer = sgd(model)
        for rows, labels in loader:
            step(model, optimizer, rows, labels)
        with torch.no_grad():
            for rows, labels in loader:
                functional.cross_entropy(model(rows), labels)

    (found,) = told(Evaluation, loop)
    assert found.of_training_loader
    assert (found.first.training, found.first.active) == (True, 1)


def test_samples_of_predictions() -> None:
    """Calls with the same rows, in train mode, between two backward passes."""

    @torch.no_grad()
    def sampled(model: nn.Module) -> None:
        torch.stack([model.train()(HELD_OUT) for _ in range(5)]).mean(0).argmax(1).eq(THEIR_LABELS)

    (found,) = trained_and(sampled)
    assert (found.sampled, found.asked_before) == (5, True)


def test_one_that_renews_statistics() -> None:
    normalised = FirstCall(training=True, active=1, gradients=False, where=None, norms=True)
    assert Evaluation(model=1, first=normalised, then_in_eval_mode=True).renews
    assert not Evaluation(model=1, first=normalised, then_in_eval_mode=True, scored=True).renews
    assert not Evaluation(model=1, first=normalised).renews

    @torch.no_grad()
    def renewed(model: nn.Module) -> None:
        for rows, _ in held_out():
            model.train()(rows)
        over_a_loader(model)

    renewing, evaluation = trained_and(renewed)
    assert (renewing.scored, renewing.then_in_eval_mode) == (False, True)
    assert (evaluation.scored, evaluation.then_in_eval_mode) == (True, True)


def test_what_is_never_scored() -> None:
    @torch.no_grad()
    def predicted(model: nn.Module) -> None:
        model.eval()(HELD_OUT).argmax(1)

    (found,) = trained_and(predicted)
    assert not found.scored
    assert found.rows == frozenset()


def test_a_loss_of_each_row() -> None:
    @torch.no_grad()
    def chosen(model: nn.Module) -> None:
        functional.cross_entropy(model.eval()(HELD_OUT), THEIR_LABELS, reduction="none").topk(4)

    (found,) = trained_and(chosen)
    assert (found.scored, found.by_row) == (False, True)


def test_what_is_kept_is_bounded() -> None:
    """Of one that never ends, as of a policy that is asked and asked."""

    @torch.no_grad()
    def endless(model: nn.Module) -> None:
        model.train()
        for number in range(MOST_CALLS + 40):
            functional.cross_entropy(model(HELD_OUT + number), THEIR_LABELS)

    (found,) = trained_and(endless)
    assert found.calls == MOST_CALLS + 40
    assert len(found.rows) <= MOST_ROWS


def test_a_training_without_an_evaluation_in_between_keeps_nothing_open() -> None:
    """The first batch of a pass is taken for one that may be evaluated, until its backward pass."""

    def loop() -> None:
        model = network()
        optimizer = sgd(model)
        for _ in range(70):
            for rows, labels in DataLoader(TensorDataset(ROWS, LABELS), batch_size=8):
                step(model, optimizer, rows, labels)
        over_a_loader(model)

    (found,) = told(Evaluation, loop)
    assert found.update == 140


def test_parts_of_tensors_that_each_batch_has_anew_are_of_one_evaluation() -> None:
    """All tokens of a row but the last, say."""

    @torch.no_grad()
    def by_parts(model: nn.Module) -> None:
        for rows, labels in zip(torch.cat([HELD_OUT, HELD_OUT], 1).split(4), THEIR_LABELS.split(4), strict=True):
            functional.cross_entropy(model.eval()((rows + 0)[:, :4]), labels)

    (found,) = trained_and(by_parts)
    assert (found.calls, found.rows) == (4, frozenset(exact(HELD_OUT)))


def test_rows_of_two_tensors_in_one_line_are_two_evaluations() -> None:
    @torch.no_grad()
    def both(model: nn.Module) -> None:
        for whole in (ROWS, HELD_OUT):
            for rows, labels in zip(whole.split(4), LABELS.split(4), strict=True):
                functional.cross_entropy(model.eval()(rows), labels)

    assert [each.rows for each in trained_and(both)] == [frozenset(exact(each)) for each in (ROWS, HELD_OUT)]


def test_a_script_that_never_differentiates_keeps_a_few_calls() -> None:
    known: list[Evaluations] = []

    def reader(monitor: Monitor) -> Evaluations:
        known.append(monitor.fact(Evaluations))
        return known[0]

    def loop() -> None:
        model = network()
        for _ in range(3 * MOST):
            functional.cross_entropy(model(HELD_OUT), THEIR_LABELS)
        assert len(known[0]._scored_in_graph) <= MOST

    watched(loop, reader)
