"""Rows that two sets have in common: by chance, where rows of a set are often alike, and otherwise."""

from __future__ import annotations

from collections import Counter

import pytest

from harness.watch.checks.rows.evaluation import _common


@pytest.mark.parametrize(
    ("common", "repeats", "found"),
    [
        (2, 0, 0),  # of 64 rows, beside 320 of which none comes twice: the next may be about to
        (3, 0, 3),
        (8, 4, 8),
        (6, 4, 0),
    ],
)
def test_rows_that_are_alike_by_chance(common: int, repeats: int, found: int) -> None:
    trained = Counter(range(320 - repeats)) + Counter(range(repeats))
    assert _common([*range(common), *range(1000, 1064 - common)], [trained]) == found
