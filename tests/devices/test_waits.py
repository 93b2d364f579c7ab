"""The watch does not make a script wait for its device: reads and copies to the host are counted, not timed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.devices.watched import device_server

UPDATES = 1_000
MOST_OF_AN_UPDATE = 0.2
MOST_OF_A_BATCH = 2
"""Of an evaluation."""


def waits(config: pytest.Config, folder: Path, how: str, updates: int, batches: int) -> dict[str, int]:
    words = ("waits.json", how, str(updates), str(batches))
    done = device_server(config).run(folder, *words, program="tests.devices.waiting")
    assert done.status == 0, done.stderr
    found: dict[str, int] = json.loads((folder / "waits.json").read_text())
    return found


@pytest.mark.slow
def test_updates_hardly_wait(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    alone, checked = (waits(pytestconfig, tmp_path, how, UPDATES, 10) for how in ("alone", "checked"))
    assert alone["updates"] == 0, "what is counted is the watch's"
    assert 0 < checked["updates"] <= MOST_OF_AN_UPDATE * UPDATES


@pytest.mark.slow
def test_an_evaluation_waits_a_few_times_a_batch(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    few, many = (waits(pytestconfig, tmp_path, "checked", 100, batches)["scoring"] for batches in (10, 110))
    assert 0 < (many - few) / 100 <= MOST_OF_A_BATCH


@pytest.mark.slow
def test_nothing_waits_between_windows(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    alone, between = (waits(pytestconfig, tmp_path, how, 200, 10) for how in ("alone", "windows"))
    assert between == alone
