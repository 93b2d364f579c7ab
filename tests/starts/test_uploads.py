"""Nothing leaves the machine: calls that upload return what theirs return."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from harness.starts.uploads import CHANGING, COMMITS, NOWHERE, Uploads
from harness.watch.instrument.patches import Patches

hub = pytest.importorskip("huggingface_hub")


def _raises(error: Exception) -> None:
    raise error


@pytest.fixture
def uploads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Uploads]:
    """In force, in an empty folder; whoever asks the hub all the same fails."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    found, patches = Uploads(), Patches(_raises)
    found.install(patches)
    yield found
    patches.undo()


@pytest.mark.parametrize("name", COMMITS)
def test_commits_are_not_made(name: str, uploads: Uploads) -> None:
    given: dict[str, dict[str, Any]] = {
        "create_commit": {"operations": [], "commit_message": "said"},
        "upload_file": {"path_or_fileobj": b"", "path_in_repo": "a"},
        "upload_folder": {"folder_path": "."},
        "delete_file": {"path_in_repo": "a"},
        "delete_files": {"delete_patterns": ["a"]},
        "delete_folder": {"path_in_repo": "a"},
    }
    made = getattr(hub.HfApi(), name)(repo_id="ada/model", **given[name])
    assert isinstance(made, hub.CommitInfo)
    assert made.oid == NOWHERE
    assert made.commit_url == f"https://huggingface.co/ada/model/commit/{NOWHERE}"
    assert list(uploads.held_back) == [f"huggingface_hub {name}"]


def test_a_repository_is_not_made_and_has_its_address(uploads: Uploads) -> None:
    made = hub.create_repo("ada/model", exist_ok=True)
    assert (made.repo_id, made.repo_type) == ("ada/model", "model")
    assert str(made).endswith("/ada/model")
    assert hub.HfApi().create_repo("ada/rows", repo_type="dataset").repo_type == "dataset"
    assert hub.HfApi().create_repo("model").repo_name == "model"


def test_what_is_uploaded_in_the_background_is_done_at_once(uploads: Uploads) -> None:
    made = hub.upload_folder(repo_id="ada/model", folder_path=".", run_as_future=True)
    assert isinstance(made, Future)
    assert made.result(timeout=0).oid == NOWHERE


def test_what_changes_anything_there_is_held_back_and_what_reads_is_not(uploads: Uploads) -> None:
    reads = ("get_", "list_", "hf_hub_", "snapshot_", "model_info", "dataset_info", "whoami", "repo_", "file_exists")
    before = {name for name in dir(hub.HfApi) if name.startswith(CHANGING)}
    assert {*COMMITS, "create_repo", "create_branch", "delete_repo", "preupload_lfs_files"} <= before
    assert not any(name.startswith(reads) for name in before)
    assert hub.HfApi().create_branch("ada/model", branch="b") is None
    assert list(uploads.held_back) == ["huggingface_hub create_branch"]


def test_afterwards_all_is_as_it_was() -> None:
    before = hub.HfApi.create_commit, hub.hf_api.create_commit, dict(os.environ)
    patches = Patches(_raises)
    Uploads().install(patches)
    assert hub.HfApi.create_commit is not before[0]
    patches.undo()
    assert (hub.HfApi.create_commit, hub.hf_api.create_commit, dict(os.environ)) == before


def tracker(name: str, monkeypatch: pytest.MonkeyPatch, **functions: Any) -> tuple[ModuleType, list[dict[str, Any]]]:
    """A module of that name whose functions keep what they are called with."""
    module, calls = ModuleType(name), list[dict[str, Any]]()

    def called(*args: Any, **kwargs: Any) -> str:
        calls.append({"args": args, **kwargs})
        return "a run"

    for each in functions or {"init": None}:
        setattr(module, each, called)
    monkeypatch.setitem(sys.modules, name, module)
    return module, calls


def test_runs_of_wandb_are_offline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("WANDB_MODE", raising=False)
    wandb, calls = tracker("wandb", monkeypatch, init=None, login=None)
    uploads, patches = Uploads(), Patches(_raises)
    uploads.install(patches)
    assert wandb.login() is True
    assert wandb.init(project="p", mode="online") == "a run"
    assert wandb.init(mode="disabled") == "a run"
    assert [each["mode"] for each in calls] == ["offline", "disabled"]
    assert list(uploads.held_back) == ["W&B (its runs are offline)"]
    assert os.environ["WANDB_MODE"] == "offline"
    patches.undo()
    assert "WANDB_MODE" not in os.environ


def test_mlflow_writes_to_the_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "https://tracks.example")
    mlflow, calls = tracker("mlflow", monkeypatch, set_tracking_uri=None)
    uploads, patches = Uploads(), Patches(_raises)
    uploads.install(patches)
    assert "MLFLOW_TRACKING_URI" not in os.environ
    mlflow.set_tracking_uri("http://tracks.example")
    mlflow.set_tracking_uri("sqlite:///mine.db")
    assert [each["args"][0] for each in calls] == [f"sqlite:///{tmp_path}/mlflow.db", "sqlite:///mine.db"]
    assert list(uploads.held_back) == ["MLflow's server"]
    patches.undo()
    assert os.environ["MLFLOW_TRACKING_URI"] == "https://tracks.example"


def test_trackio_has_no_space(monkeypatch: pytest.MonkeyPatch) -> None:
    trackio, calls = tracker("trackio", monkeypatch)
    uploads, patches = Uploads(), Patches(_raises)
    uploads.install(patches)
    trackio.init(project="p", space_id="ada/space")
    assert calls == [{"args": (), "project": "p", "space_id": None}]
    assert list(uploads.held_back) == ["trackio's Space"]
    patches.undo()


def test_experiments_of_comet_are_offline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    comet, calls = tracker("comet_ml", monkeypatch, start=None, Experiment=None, OfflineExperiment=None)
    uploads, patches = Uploads(), Patches(_raises)
    uploads.install(patches)
    comet.start(project_name="p")
    comet.Experiment("a key", project_name="p")
    assert calls[0]["online"] is False
    assert calls[1]["offline_directory"] == f"{tmp_path}/.comet"
    assert calls[1]["project_name"] == "p"
    patches.undo()
