"""A run that was killed goes on to the bits that it would have come to; its folder is its own."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from filelock import FileLock

from harness.documented_run.recipe import Recipe
from harness.documented_run.record import RunRecord
from harness.documented_run.run import CHECKPOINT, run_recipe
from harness.documented_run.stages import Run
from harness.documented_run.stages.resuming import Keeper
from harness.errors import CannotTry
from harness.files import LOCK


class Killed(BaseException):
    """Nothing in a run catches it, as nothing catches SIGKILL."""


def told(record: RunRecord) -> dict[str, Any]:
    """All that a record says of a run but how long it took, when, and by what command."""
    values: dict[str, Any] = json.loads(record.model_dump_json())
    return {name: value for name, value in values.items() if name not in ("seconds", "started", "provenance")}


def weights(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (folder / "model").iterdir()}


def killed(recipe: Recipe, folder: Path, monkeypatch: pytest.MonkeyPatch, *, epoch: int, **options: Any) -> None:
    """Leave what a run leaves that is killed after an epoch, with a file that it was about to write."""
    keep, kept = Keeper.keep, []

    def keeps_and_dies(self: Keeper, run: Run, loader: Any) -> None:
        keep(self, run, loader)
        kept.append(loader)
        if len(kept) == epoch:
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(Keeper, "keep", keeps_and_dies)
        with pytest.raises(Killed):
            run_recipe(recipe, output=folder, **options)
    assert [path.name for path in folder.iterdir()] == [CHECKPOINT]
    (folder / f".{CHECKPOINT}.123").write_bytes(b"half")


@pytest.fixture(scope="module")
def whole(small_run: Callable[[str], Path]) -> Path:
    return small_run("plain")


@pytest.fixture(scope="module")
def after_one_epoch(small: Recipe, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("killed")
    with pytest.MonkeyPatch.context() as patch:
        killed(small, folder, patch, epoch=1)
    return folder


@pytest.fixture
def begun(after_one_epoch: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(after_one_epoch, tmp_path / "begun"))


@pytest.mark.parametrize("epoch", [1, pytest.param(2, marks=pytest.mark.nightly)])
def test_goes_on_to_the_same_bits(
    small: Recipe, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, epoch: int
) -> None:
    killed(small, tmp_path / "out", monkeypatch, epoch=epoch)
    record = run_recipe(small, output=tmp_path / "out", resume=True)
    assert told(record) == told(RunRecord.read(whole))
    assert record.provenance.resumed_after == 8 * epoch
    assert weights(tmp_path / "out") == weights(whole)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["model", "run.json"]


@pytest.mark.nightly
@pytest.mark.parametrize("loop", ["accelerate", "trainer"])
def test_other_loops_go_on_to_the_same_bits(
    small: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, loop: str
) -> None:
    recipe = small.with_(loop=loop)
    expected = run_recipe(recipe, output=tmp_path / "whole")
    killed(recipe, tmp_path / "out", monkeypatch, epoch=1)
    record = run_recipe(recipe, output=tmp_path / "out", resume=True)
    assert told(record) == told(expected)
    assert record.provenance.resumed_after == 8
    assert weights(tmp_path / "out") == weights(tmp_path / "whole")


def without_trace(state: dict[str, Any]) -> None:
    del state["ranks"][0]["training"]["events"][0]


def without_random_state(state: dict[str, Any]) -> None:
    state["ranks"][0]["random"]["torch"] = torch.Generator().get_state()


def without_optimizer(state: dict[str, Any]) -> None:
    state["optimizer"]["state"] = {}


def without_schedule(state: dict[str, Any]) -> None:
    state["lr_scheduler"]["last_epoch"] = 0


def without_weights(state: dict[str, Any]) -> None:
    first = next(iter(state["model"]))
    state["model"][first] = state["model"][first] * 1.5


def without_metrics(state: dict[str, Any]) -> None:
    state["epochs"] = []


@pytest.mark.slow
@pytest.mark.parametrize(
    "loses",
    [
        without_random_state,
        without_weights,
        *(
            pytest.param(each, marks=pytest.mark.nightly)
            for each in (without_trace, without_optimizer, without_schedule, without_metrics)
        ),
    ],
)
def test_what_is_lost_would_be_seen(
    small: Recipe, whole: Path, begun: Path, loses: Callable[[dict[str, Any]], None]
) -> None:
    state = torch.load(begun / CHECKPOINT, weights_only=True)
    loses(state)
    torch.save(state, begun / CHECKPOINT)
    assert told(run_recipe(small, output=begun, resume=True)) != told(RunRecord.read(whole))


@pytest.mark.slow
def test_begins_anew_where_nothing_was_kept(small: Recipe, whole: Path, tmp_path: Path) -> None:
    record = run_recipe(small, output=tmp_path / "new", resume=True)
    assert told(record) == told(RunRecord.read(whole))
    assert record.provenance.resumed_after is None


@pytest.mark.slow
def test_an_interrupted_run_is_gone_on_with(
    small: Recipe, whole: Path, begun: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its record is there, says that it was interrupted, and is replaced."""

    def interrupted(self: Keeper, run: Run, loader: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Keeper, "keep", interrupted)
        assert run_recipe(small, output=begun, resume=True).interrupted
    assert RunRecord.read(begun).updates == 16
    assert told(run_recipe(small, output=begun, resume=True)) == told(RunRecord.read(whole))


@pytest.mark.parametrize(
    ("changes", "options", "message"),
    [
        ({"seed": 7}, {}, r"has recipe.seed 42, and here it is 7: a run can be resumed only with the same options"),
        ({}, {"updates": 12}, r"has updates None, and here it is 12"),
    ],
)
def test_another_run_is_refused_before_anything_is_spent(
    small: Recipe, begun: Path, changes: dict[str, Any], options: dict[str, Any], message: str
) -> None:
    stages: list[object] = []
    before = (begun / CHECKPOINT).read_bytes()
    with pytest.raises(CannotTry, match=message):
        run_recipe(small.with_(**changes), output=begun, resume=True, on_stage=stages.append, **options)
    assert stages == []
    assert (begun / CHECKPOINT).read_bytes() == before


def test_other_versions_are_refused(small: Recipe, begun: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.documented_run.run.fingerprint", lambda device: {"libraries": {"torch": "3.0"}})
    with pytest.raises(CannotTry, match=r"has fingerprint\.libraries\.torch '.*', and here it is '3\.0'"):
        run_recipe(small, output=begun, resume=True)


@pytest.mark.parametrize("content", [b"", b"no checkpoint", b"PK\x03\x04" + bytes(1000)])
def test_a_damaged_file_is_refused(small: Recipe, begun: Path, content: bytes) -> None:
    (begun / CHECKPOINT).write_bytes(content)
    with pytest.raises(
        CannotTry, match=rf"{CHECKPOINT} cannot be read \(.*\); remove it to start the run from the beginning"
    ):
        run_recipe(small, output=begun, resume=True)


def test_a_run_that_was_killed_is_not_overwritten(small: Recipe, begun: Path) -> None:
    with pytest.raises(CannotTry, match=r"already holds an interrupted run; continue it with --resume"):
        run_recipe(small, output=begun)


def test_a_whole_run_is_not_gone_on_with(small: Recipe, whole: Path) -> None:
    before = (whole / "run.json").read_bytes()
    with pytest.raises(CannotTry, match=r"is finished, so there is nothing to continue; choose another folder"):
        run_recipe(small, output=whole, resume=True)
    with pytest.raises(CannotTry, match="already holds a run; choose another folder"):
        run_recipe(small, output=whole)
    assert (whole / "run.json").read_bytes() == before


def test_two_runs_never_share_a_folder(small: Recipe, tmp_path: Path) -> None:
    with (
        FileLock(tmp_path / LOCK),
        pytest.raises(CannotTry, match=r"another run is writing to output folder .*--output"),
    ):
        run_recipe(small, until="load", output=tmp_path)
    run_recipe(small, until="load", output=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]


def test_a_folder_is_claimed_while_the_run_goes_on(small: Recipe, tmp_path: Path) -> None:
    def second(stage: object) -> None:
        with pytest.raises(CannotTry, match="another run is writing to output folder"):
            run_recipe(small, until="load", output=tmp_path)

    run_recipe(small, until="load", output=tmp_path, on_stage=second)


@pytest.mark.slow
def test_an_epoch_that_cannot_be_kept_costs_nothing_else(
    small: Recipe, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def full(*args: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(torch, "save", full)
    assert told(run_recipe(small, output=tmp_path)) == told(RunRecord.read(whole))
    assert "this epoch could not be saved" in capfd.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model", "run.json"]
