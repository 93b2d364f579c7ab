"""``harness compare`` on scripts and edited ones: the first difference, its update, its cause; none where none is."""

from __future__ import annotations

from typing import Any

import pytest

from tests.compare.forked import entries
from tests.resume.forked import lines_of

ENTRIES = entries()

QUICK = ("plain-label-smoothing", "plain-one-more-random-number")


def results(*arguments: str) -> dict[str, dict[str, Any]]:
    return {line["name"]: line for line in lines_of("tests.compare.forked", *arguments)}


def check(entry: dict[str, Any], found: dict[str, Any]) -> None:
    assert "error" not in found, found
    if "cause" not in entry:
        assert (found["differences"], found["updates"] > 0) == ([], True)
        return
    first = found["differences"][0]
    causes = [entry["cause"]] if isinstance(entry["cause"], str) else entry["cause"]
    assert first["cause"] in causes, found
    assert first["update"] == entry["update"], found


def test_a_loss_and_a_random_number() -> None:
    found = results("--plain", *QUICK)
    for name in QUICK:
        check(ENTRIES[name], found[name])


@pytest.fixture(scope="module")
def all_results() -> dict[str, dict[str, Any]]:
    return results()


@pytest.mark.slow
@pytest.mark.parametrize("name", ENTRIES)
def test_corpus(name: str, all_results: dict[str, dict[str, Any]]) -> None:
    check(ENTRIES[name], all_results[name])
