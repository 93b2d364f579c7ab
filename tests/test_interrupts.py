"""Signals, full disks and what is missing: each is one sentence, and loses nothing that was measured."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, tzinfo
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from harness import launch, processes
from harness.cli import main
from harness.cli.options import run_folder
from harness.documented_run.baseline import sessions
from harness.documented_run.baseline.files import locked
from harness.documented_run.recipe import Recipe
from harness.documented_run.record import RunRecord
from harness.documented_run.run import run_recipe
from harness.documented_run.stages import Run, tokenize, train
from harness.errors import CannotTry
from harness.files import LOCK, claimed_folder, no_space
from tests.test_launch import processes_of
from tests.test_record import RECORD

PATIENCE = 240.0


@contextmanager
def started(command: list[str], **environment: str) -> Iterator[subprocess.Popen[str]]:
    """The harness's command line in a process group of its own, as a shell starts it."""
    hears = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen(
        [sys.executable, "-m", "harness", *command],
        env=os.environ | {"OMP_NUM_THREADS": "1", "TQDM_DISABLE": ""} | environment,
        preexec_fn=hears,
        start_new_session=True,
        **pipes,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def read_until(process: subprocess.Popen[str], pattern: str) -> str:
    assert process.stderr is not None
    shown = ""
    for more in iter(partial(process.stderr.read, 1), ""):
        shown += more
        if re.search(pattern, shown):
            return shown
    raise AssertionError(f"it ended before {pattern}: {shown[-2000:]}")


def command_of(pid: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def wait_for(condition: Callable[[], bool]) -> bool:
    until = time.monotonic() + PATIENCE
    while not condition() and time.monotonic() < until:
        time.sleep(0.2)
    return condition()


@pytest.fixture
def long_run(small: Recipe, tmp_path: Path) -> list[str]:
    """A command that trains for minutes."""
    file = tmp_path / "mine.py"
    file.write_text(f"from harness.documented_run.recipe import Recipe\nlong = {small.with_(epochs=500)!r}\n")
    return ["run", "--recipe", f"{file}:long", "--output", str(tmp_path / "out")]


TRAINS = r" [1-9]\d*/\d+ "
"""The progress bar, after the first updates."""


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.nightly)])
def test_a_signal_keeps_what_was_measured(long_run: list[str], tmp_path: Path, number: signal.Signals) -> None:
    with started(long_run) as process:
        read_until(process, TRAINS)
        process.send_signal(number)
        _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 2
    assert "harness: interrupted; the results so far are in" in errors
    assert "--resume continues from there" in errors
    assert "Traceback" not in errors
    record = RunRecord.read(tmp_path / "out")
    assert record.interrupted
    assert 0 < record.updates == len(record.curves.loss) == len(record.curves.lr) < 4000


@pytest.mark.nightly
@pytest.mark.distributed
@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.nightly)])
def test_so_in_several_processes(long_run: list[str], tmp_path: Path, number: signal.Signals) -> None:
    """SIGINT reaches all of them, as from a terminal; SIGTERM the first, as from a scheduler."""
    with started([*long_run, "--loop", "accelerate", "--processes", "2"], HARNESS_TEST_RUN=str(tmp_path)) as process:
        read_until(process, TRAINS)
        if number == signal.SIGINT:
            os.killpg(process.pid, number)
        else:
            process.send_signal(number)
        _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 2
    assert "harness: interrupted; the results so far are in" in errors
    assert "Traceback" not in errors
    record = RunRecord.read(tmp_path / "out")
    assert record.interrupted
    assert record.updates > 0
    assert not processes_of(f"HARNESS_TEST_RUN={tmp_path}")


@pytest.mark.nightly
@pytest.mark.distributed
def test_so_while_the_ranks_import(long_run: list[str], tmp_path: Path) -> None:
    command = [*long_run, "--loop", "accelerate", "--processes", "2"]
    with started(command, HARNESS_TEST_RUN=str(tmp_path)) as process:
        ours = f"HARNESS_TEST_RUN={tmp_path}"
        assert wait_for(lambda: any(b"spawn_main" in command_of(each) for each in processes_of(ours)))
        os.killpg(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 2
    assert "harness: interrupted" in errors
    assert "Traceback" not in errors
    assert not processes_of(f"HARNESS_TEST_RUN={tmp_path}")


@pytest.mark.nightly
@pytest.mark.distributed
def test_ranks_end_with_their_parent(long_run: list[str], tmp_path: Path) -> None:
    folder = tmp_path / "tmp"
    folder.mkdir()
    command = [*long_run, "--loop", "accelerate", "--processes", "2"]
    with started(command, TMPDIR=str(folder), HARNESS_TEST_RUN=str(tmp_path)) as process:
        assert wait_for(lambda: bool(list(folder.glob("harness-ranks-*/last-seen-1"))))
        os.kill(process.pid, signal.SIGKILL)
        assert wait_for(lambda: not processes_of(f"HARNESS_TEST_RUN={tmp_path}"))
    assert list(folder.glob("harness-*")) == []


@pytest.mark.parametrize(("updates", "left"), [(0, []), (3, ["run.json"])])
def test_a_failing_rank_leaves_what_the_others_measured(
    small: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, updates: int, left: list[str]
) -> None:
    def failing(*args: object, **kwargs: object) -> None:
        values = json.loads(RECORD.read_text()) | {"interrupted": True, "updates": updates}
        (tmp_path / "out" / "run.json").write_text(json.dumps(values))
        raise CannotTry("rank 1: ValueError: no such label")

    monkeypatch.setattr(launch, "in_processes", failing)
    with pytest.raises(CannotTry, match="rank 1: ValueError"):
        run_recipe(small.with_(loop="accelerate", processes=2), output=tmp_path / "out")
    assert [path.name for path in (tmp_path / "out").glob("*")] == left


def test_what_is_missing_is_known_before_the_first_stage(small: Recipe, tmp_path: Path) -> None:
    from harness.documented_run.sources.builtin import CHECKPOINT

    for path in CHECKPOINT.iterdir():
        if path.suffix != ".safetensors":
            (tmp_path / path.name).write_bytes(path.read_bytes())
    stages: list[object] = []
    recipe = small.with_(checkpoint=str(tmp_path))
    with pytest.raises(CannotTry, match="has no weights"):
        run_recipe(recipe, on_stage=stages.append)
    assert stages == []
    run_recipe(recipe, until="tokenize", on_stage=stages.append)  # which needs none
    assert len(stages) == 2


def test_no_network_is_known_before_the_first_stage(small: Recipe, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.documented_run.sources.hub.reachable", lambda: False)
    stages: list[object] = []
    with pytest.raises(CannotTry, match="not in the local cache and the hub cannot be reached"):
        run_recipe(small.with_(checkpoint="nobody/nothing"), on_stage=stages.append)
    assert stages == []


def test_baselines_that_cannot_be_written_are_known_before_a_run(small: Recipe, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(CannotTry, match=r"candidates cannot be written .*--baselines"):
        sessions.seeds_to_record(small, 1, tmp_path / "file", timeout=60)


def test_a_loss_that_is_not_finite_ends_the_training(small: Recipe) -> None:
    record = run_recipe(small.with_(lr=1e30, epochs=50))
    (finding,) = (each for each in record.findings if each.severity == "error")
    assert finding.check == "train::loss-stays-finite"
    assert finding.update is not None
    assert record.updates == finding.update < 8
    assert record.updates_planned == 400


@pytest.mark.nightly
@pytest.mark.parametrize("loop", ["accelerate", "trainer"])
def test_so_in_the_other_loops(small: Recipe, monkeypatch: pytest.MonkeyPatch, loop: str) -> None:
    do = train.STAGE.do

    def from_broken_weights(run: Run) -> None:
        run.model.classifier.bias.data.fill_(float("nan"))
        do(run)

    monkeypatch.setattr(train.STAGE, "do", from_broken_weights)
    record = run_recipe(small.with_(loop=loop))
    (finding,) = (each for each in record.findings if each.severity == "error")
    assert (finding.check, finding.update, record.updates) == ("train::loss-stays-finite", 1, 1)


def full(*args: object, **kwargs: object) -> None:
    raise OSError(28, "No space left on device")


def test_a_full_disk_is_no_finding(small: Recipe, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokenize.STAGE, "do", full)
    with pytest.raises(CannotTry, match=r"^the step tokenize could not be done \(No space left on device\)"):
        run_recipe(small, until="tokenize")


def test_a_full_disk_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.report.terminal.claims_lines", full)
    result = CliRunner().invoke(main, ["claims"])
    assert result.exit_code == 2
    assert result.stderr == "harness: what was found could not be written (No space left on device)\n"


def test_a_full_disk_while_the_model_is_saved(small: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from safetensors import SafetensorError
    from transformers import PreTrainedModel

    def says(*args: object, **kwargs: object) -> None:
        raise SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")

    monkeypatch.setattr(PreTrainedModel, "save_pretrained", says)
    with pytest.raises(CannotTry, match=r"its model could not be saved \(No space left on device\)$"):
        run_recipe(small, updates=2, output=tmp_path)
    assert RunRecord.read(tmp_path).updates == 2


def test_which_errors_are_a_full_disk() -> None:
    leads_to = ValueError("columns of other types")
    leads_to.__context__ = OSError(28, "No space left on device")
    assert no_space(leads_to) == "No space left on device"
    assert no_space(OSError(27, "File too large")) == "File too large"
    assert no_space(OSError(13, "Permission denied")) is None
    assert no_space(ValueError("28")) is None


def test_no_lock_is_left(tmp_path: Path) -> None:
    with locked(tmp_path / "baseline.json"):
        assert [path.name for path in tmp_path.iterdir()] == ["baseline.lock"]
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_recording_says_what_it_keeps(
    small: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*args: object, **kwargs: object) -> RunRecord:
        raise KeyboardInterrupt

    _, start = sessions.seeds_to_record(small, 1, tmp_path, timeout=60)
    monkeypatch.setattr(sessions, "run_recipe", interrupted)
    with pytest.raises(CannotTry, match="interrupted; no seed was recorded, and the same command continues from there"):
        list(sessions.record_seeds([small], tmp_path, start=start, timeout=60))


def test_a_folder_is_one_commands_at_a_time(tmp_path: Path) -> None:
    with claimed_folder(tmp_path / "out"):
        with (
            pytest.raises(CannotTry, match="another run is writing to output folder"),
            claimed_folder(tmp_path / "out"),
        ):
            pass
        assert [path.name for path in (tmp_path / "out").iterdir()] == [LOCK]
    assert list((tmp_path / "out").iterdir()) == []


def test_two_runs_of_one_second_have_folders_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    class Noon(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Noon:
            return cls(2026, 11, 22, 12)

    monkeypatch.setattr("harness.cli.options.datetime", Noon)
    names = set()
    for pid in (1, 2):
        monkeypatch.setattr("os.getpid", lambda pid=pid: pid)
        names.add(run_folder("tiny-plain-42"))
    assert len(names) == 2


def test_what_a_script_forked_holds_nothing_up(tmp_path: Path) -> None:
    """The workers of a DataLoader have the pipe to what cleans up, and live as long as the loader."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    with processes.afterwards(folder):
        child = os.fork()
        if not child:
            signal.alarm(30)  # which ends it, if it is waited for
            signal.pause()
    try:
        assert not folder.exists()
        assert os.waitpid(child, os.WNOHANG) == (0, 0)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
