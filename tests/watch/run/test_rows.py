from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

from harness.watch.monitor import Monitor
from harness.watch.run.rows import MOST_VALUES, TrainedRows, are_measured, blind, exact, numbers
from tests.watch.facts.small import sgd, step
from tests.watch.run.account import watched

ROWS, LABELS = torch.arange(64.0).reshape(16, 4) / 64, torch.arange(16) % 2


@given(st.lists(st.lists(st.integers(0, 30_000), min_size=3, max_size=3), min_size=1, max_size=8))
def test_rows_are_alike_exactly_where_their_numbers_are(rows: list[list[int]]) -> None:
    whole = torch.tensor(rows)
    for identities in (exact(whole), list(blind([whole]))):
        assert (len(set(identities))) == len(set(map(tuple, torch.tensor(rows).tolist())))


@pytest.mark.parametrize(("places", "values"), [(6, 8), (12, 4), (10, 10)])
def test_rows_of_small_numbers_are_told_apart(places: int, values: int) -> None:
    rows = torch.randint(values, (20_000, places), generator=torch.Generator().manual_seed(0))
    assert len(set(exact(rows))) == len(torch.unique(rows, dim=0))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.bool])
def test_the_exact_identity_is_of_bits(dtype: torch.dtype) -> None:
    rows = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]).to(dtype)
    one, other, third = exact(rows)
    assert len({one, other, third}) == 3
    assert exact(rows[1:2]) == [other]
    assert exact(rows[:, :1].expand(3, 2))[0] == exact(torch.ones(1, 2, dtype=dtype))[0]


def test_two_numbers_next_to_each_other_are_two_rows() -> None:
    one = torch.tensor([[1.0, 2.0]])
    assert exact(one) != exact(torch.nextafter(one, one + 1))


def test_what_lies_behind_the_first_values_is_not_seen() -> None:
    rows = torch.zeros(2, MOST_VALUES + 1)
    rows[1, -1] = 1
    assert len(set(exact(rows))) == 1
    assert len(set(blind([rows]))) == 2


def test_padding_makes_no_other_row() -> None:
    short, long = torch.tensor([[7, 8, 9]]), torch.tensor([[7, 8, 9, 0, 0]])
    assert list(blind([short])) == list(blind([long]))
    assert exact(short) == exact(long)
    assert numbers([7, 8, 9]) == numbers([7, 8, 9, 0])
    assert list(blind([short])) != list(blind([short + 1]))


def test_what_is_no_number_has_no_identity() -> None:
    with pytest.raises(ValueError, match="no type of numbers"):
        numbers(["a", "b"])


def trained(loop: object) -> TrainedRows:
    found: list[TrainedRows] = []

    def reader(monitor: Monitor) -> TrainedRows:
        found.append(monitor.fact(TrainedRows))
        return found[0]

    watched(loop, reader)  # type: ignore[arg-type]
    return found[0]


@pytest.mark.parametrize("by_loader", [True, False])
def test_rows_that_were_trained_on(by_loader: bool) -> None:
    """Whatever they come from; and none that were evaluated, with a graph or without."""

    def loop() -> None:
        model = nn.Linear(4, 2)
        optimizer = sgd(model)
        batches = (
            DataLoader(TensorDataset(ROWS, LABELS), batch_size=8)
            if by_loader
            else zip(ROWS.split(8), LABELS.split(8), strict=True)
        )
        for rows, labels in batches:
            step(model, optimizer, rows, labels)
            functional.cross_entropy(model(ROWS + 7), LABELS)
            with torch.no_grad():
                functional.cross_entropy(model(ROWS + 9), LABELS)

    (known,) = trained(loop).of.values()
    assert known == set(exact(ROWS))


def test_a_row_that_comes_twice_in_a_batch_is_known_to() -> None:
    def loop() -> None:
        model = nn.Linear(4, 2)
        step(model, sgd(model), ROWS[:1].repeat(8, 1), LABELS[:8])

    assert len(trained(loop).alike) == 1


def test_a_loss_may_be_differentiated_after_the_next_one_is_computed() -> None:
    def loop() -> None:
        model, kept = nn.Linear(4, 2), None
        optimizer = sgd(model)
        for rows, labels in [*zip(ROWS.split(4), LABELS.split(4), strict=True), (ROWS + 5, LABELS)]:
            loss = functional.cross_entropy(model(rows), labels)
            if kept is not None:
                optimizer.zero_grad()
                kept.backward()
                optimizer.step()
            kept = loss

    (known,) = trained(loop).of.values()
    assert known == set(exact(ROWS))


class OfALine(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.line = nn.Linear(4, 2)

    def forward(self, times: torch.Tensor, coefficients: list[torch.Tensor]) -> torch.Tensor:
        logits: torch.Tensor = self.line(coefficients[0] * times.mean() + coefficients[1])
        return logits


def test_rows_are_found_within_a_list_and_behind_what_all_rows_share() -> None:
    def loop() -> None:
        model, times = OfALine(), torch.linspace(0, 1, 64)
        optimizer = sgd(model)
        for rows, labels in zip(ROWS.split(8), LABELS.split(8), strict=True):
            functional.cross_entropy(model(times, [rows, rows + 1]), labels).backward()
            optimizer.step()

    (known,) = trained(loop).of.values()
    assert known == set(exact(ROWS))


GENERATOR = torch.Generator().manual_seed(0)
DRAWN = torch.randn(100, 6, generator=GENERATOR)
WHOLE = torch.randint(0, 9, (100, 6), generator=GENERATOR).float()


@pytest.mark.parametrize(
    "rows",
    [DRAWN, torch.cat([DRAWN, DRAWN[:40]]), torch.cat([DRAWN, WHOLE], 1), (WHOLE / 7 + 0.01).repeat(1, 12)],
    ids=["of their own", "some come again", "beside whole ones", "many"],
)
def test_rows_that_are_measured(rows: torch.Tensor) -> None:
    assert are_measured(rows)


@pytest.mark.parametrize(
    "rows",
    [WHOLE, WHOLE / 7, torch.cat([DRAWN[:, :3], WHOLE], 1), DRAWN.long(), DRAWN[:0]],
    ids=["whole", "of few values", "in too few columns", "whole numbers", "none"],
)
def test_rows_that_may_be_alike_by_chance(rows: torch.Tensor) -> None:
    assert not are_measured(rows)


def test_rows_behind_time_are_known_by_the_targets() -> None:
    """(token, row): tokens that are the same in all rows are no rows that come again."""

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words, self.head = nn.Embedding(20, 8), nn.Linear(8, 2)

        def forward(self, tokens: torch.Tensor) -> torch.Tensor:
            scores: torch.Tensor = self.head(self.words(tokens).mean(0))
            return scores

    tokens = torch.randint(1, 20, (4, 32))
    tokens[1] = 0

    def loop() -> None:
        model = Model()
        optimizer = sgd(model)
        for part, labels in zip(tokens.split(12, dim=1), torch.arange(32).split(12), strict=True):
            step(model, optimizer, part, labels % 2)

    (known,) = trained(loop).of.values()
    assert known == set(exact(tokens.T))
