"""Rows that are others, in words."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

from harness.baseline.rows import sentences
from harness.baseline.trainings import Changed, TrainingVerdict
from harness.describe.page import describing
from harness.report.trainings import verdict_lines

COLUMNS = {"data.Net.columns_bits": ["aa", "bb", "cc", "dd"], "data.Net.with_targets_bits": "11"}
TOKENS = {"data.Net.digest": "22", "data.Net.with_targets": "11"}
ASKED = {"data.Net.asked.columns_bits": ["aa", "bb", "cc", "dd"], "data.Net.asked.digest_bits": "33"}


@pytest.mark.parametrize(
    ("was", "now", "sentence"),
    [
        (COLUMNS, {"columns_bits": ["bb", "aa", "cc", "dd"]}, "other values: columns 0 and 1 are exchanged"),
        (COLUMNS, {"columns_bits": ["bb", "cc", "aa", "dd"]}, "other values: columns 0, 1, 2 are in a different order"),
        (COLUMNS, {"columns_bits": ["aa", "bb", "cc", "ee"]}, "the rows hold other values in column 3"),
        (COLUMNS, {"columns_bits": ["aa", "ff", "cc", "ee"]}, "other values in columns 1, 3"),
        (COLUMNS, {"columns_bits": ["1", "2", "3", "4"]}, "other values in all 4 columns"),
        (COLUMNS, {}, "each column has the same values, in other rows or with other targets"),
        (COLUMNS, {"columns_bits": ["1", "2", "3", "4"], "given": 52}, None),
        (ASKED, {"columns_bits": ["bb", "aa", "cc", "dd"]}, "columns 0 and 1 are exchanged"),
        (ASKED, {}, "each column has the same values, in other rows"),
        ({"data.Net.with_targets_bits": "11"}, {}, "the rows hold other values, or have other targets"),
        ({"data.Net.asked.digest_bits": "11"}, {}, "the rows hold other values"),
        (TOKENS, {"digest": "23", "with_targets": "11"}, "the same rows come in a different order"),
        (TOKENS, {}, "the rows hold other values, or have other targets"),
        ({"data.train.first_order": "11"}, {}, "the rows of the first pass come in a different order"),
    ],
)
def test_what_digests_of_rows_say(was: dict[str, Any], now: dict[str, Any], sentence: str | None) -> None:
    """A digest that is no list has always changed where ``now`` does not say otherwise."""
    of = next(iter(was)).rpartition(".")[0]
    is_now = {key: value if isinstance(value, list) else f"{value}0" for key, value in was.items()}
    is_now |= {f"{of}.{key}": value for key, value in now.items()}
    found = sentences([key for key in is_now if is_now[key] != was.get(key)], was, is_now)
    assert list(found) == ([of] if sentence else [])
    assert found.get(of, "").endswith(sentence or "")


def test_a_sentence_takes_the_place_of_the_digests() -> None:
    changed = [
        Changed("data.Net.mean", 0.1, 0.2),
        Changed("data.Net.columns_bits", ["aa", "bb"], ["bb", "aa"]),
        Changed("data.Net.with_targets_bits", "11", "12"),
    ]
    found = TrainingVerdict("sft", {"data": changed}, rows={"data.Net": "columns 0 and 1 are exchanged"})
    assert [*verdict_lines(found)][1:3] == ["  data.Net: columns 0 and 1 are exchanged", "  data.Net.mean: 0.1 -> 0.2"]


def _columns(rows: torch.Tensor) -> tuple[Any, Any]:
    with describing() as found:
        torch.manual_seed(0)
        model = nn.Linear(rows.shape[1], 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for batch in rows[:16].split(4):
            optimizer.zero_grad()
            functional.cross_entropy(model(batch), (batch[:, 2] > 0).long()).backward()
            optimizer.step()
        with torch.no_grad():
            model(rows[16:])
    return tuple(found.facts.get(f"data.Linear.{key}") for key in ("columns_bits", "asked.columns_bits"))  # type: ignore[return-value]


def test_each_column_has_a_digest_that_no_order_of_the_rows_changes() -> None:
    rows = torch.randn(20, 4, generator=torch.Generator().manual_seed(1))
    trained, asked = _columns(rows)
    assert len({*trained, *asked}) == 8
    assert _columns(torch.cat([rows[:16].flip(0), rows[16:].flip(0)])) == (trained, asked)
    exchanged, _ = _columns(rows[:, [1, 0, 2, 3]])
    assert exchanged == [trained[1], trained[0], *trained[2:]]
    rows[3, 3] += 1
    assert _columns(rows)[0][:3] == trained[:3] != _columns(rows)[0][1:]
    assert _columns(torch.randn(20, 33)) == (None, None)
