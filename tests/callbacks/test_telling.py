"""Telling: a finding comes to the log, and to the trackers whose run is active; one that fails is no matter."""

from __future__ import annotations

import json
import logging
import sys
from enum import StrEnum
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from harness.callbacks.telling import tell
from harness.findings import Finding

ERROR = Finding("one", "another", "Mend it.", "train.py:7", 12, "gradients::lost", "error", "Gradients are lost.")
WARNING = Finding("one", "another", "Look.", None, 3, "inputs::truncated", "warning", "Texts are cut.")
LINE = "Gradients are lost. Expected one; observed another (train.py:7, update 12)"


@pytest.fixture(autouse=True)
def _no_tracker(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("wandb", "mlflow", "trackio", "torch.utils.tensorboard", "tensorboardX"):
        monkeypatch.delitem(sys.modules, name, raising=False)


def put(monkeypatch: pytest.MonkeyPatch, name: str, **attributes: Any) -> None:
    module = ModuleType(name)
    vars(module).update(attributes)
    monkeypatch.setitem(sys.modules, name, module)


def test_the_log_says_what_and_where(caplog: pytest.LogCaptureFixture) -> None:
    tell(ERROR)
    tell(WARNING)
    assert [(each.name, each.levelno) for each in caplog.records] == [("harness", logging.ERROR), ("harness", 30)]
    first = caplog.records[0].getMessage()
    assert first.startswith(
        "harness found in this run: gradients::lost\n  error: gradients::lost: Gradients are lost.\n"
    )
    assert "where     train.py:7, update 12" in first
    assert "Mend it." in first


class Run:
    """The part of wandb's Run that is used, as wandb 0.31 has it."""

    def __init__(self) -> None:
        self.alerts: list[tuple[str, str, Any]] = []
        self.summary: dict[str, str] = {}

    def alert(self, title: str, text: str, level: Any = None, wait_duration: Any = None) -> None:
        self.alerts.append((title, text, level))


def test_wandb_gets_an_alert_and_a_line_in_the_summary(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run()
    put(monkeypatch, "wandb", run=run)
    tell(ERROR)
    tell(WARNING)
    assert [(title, level) for title, _, level in run.alerts] == [
        ("harness: gradients::lost", "ERROR"),
        ("harness: inputs::truncated", "WARN"),
    ]
    assert "Mend it." in run.alerts[0][1]
    assert run.summary["harness/gradients::lost"] == LINE


def test_mlflow_gets_a_tag_and_an_artifact(monkeypatch: pytest.MonkeyPatch) -> None:
    tags: dict[str, str] = {}
    files: dict[str, Any] = {}

    def log_dict(dictionary: dict[str, Any], artifact_file: str, run_id: str | None = None) -> None:
        files[artifact_file] = dictionary

    def set_tag(key: str, value: Any, synchronous: bool | None = None) -> None:
        tags[key] = value

    put(monkeypatch, "mlflow", active_run=lambda: object(), set_tag=set_tag, log_dict=log_dict)
    tell(ERROR)
    assert tags == {"harness.gradients.lost": LINE}
    assert files == {"harness/gradients.lost.json": ERROR.as_dict()}
    assert json.dumps(files)


class AlertLevel(StrEnum):
    """As trackio has it."""

    WARN = "warn"
    ERROR = "error"


def test_trackio_gets_an_alert_where_it_has_them(monkeypatch: pytest.MonkeyPatch) -> None:
    alerts: list[tuple[str, AlertLevel]] = []
    active = SimpleNamespace(current_run=SimpleNamespace(get=object))

    def alert(
        title: str, text: str | None = None, level: AlertLevel = AlertLevel.WARN, webhook_url: str | None = None
    ) -> None:
        assert text is not None
        alerts.append((title, level))

    put(monkeypatch, "trackio", alert=alert, AlertLevel=AlertLevel, context_vars=active)
    tell(ERROR)
    tell(WARNING)
    assert [level for _, level in alerts] == [AlertLevel.ERROR, AlertLevel.WARN]
    put(monkeypatch, "trackio", context_vars=active)
    tell(ERROR)
    assert len(alerts) == 2


def test_libraries_without_an_active_run_are_left_alone(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    put(monkeypatch, "wandb", run=None)
    put(monkeypatch, "mlflow", active_run=lambda: None)
    none = SimpleNamespace(current_run=SimpleNamespace(get=lambda: None))
    put(monkeypatch, "trackio", alert=None, context_vars=none)
    tell(ERROR)
    assert len(caplog.records) == 1


def test_a_tracker_that_fails_is_logged_and_the_others_are_told(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails() -> None:
        raise ConnectionError("no server")

    run = Run()
    put(monkeypatch, "mlflow", active_run=fails)
    put(monkeypatch, "trackio", alert=fails)
    put(monkeypatch, "wandb", run=run)
    tell(ERROR)
    assert len(run.alerts) == 1
    said = [each.getMessage() for each in caplog.records[1:]]
    assert said[0] == "harness could not report to mlflow about gradients::lost: ConnectionError: no server"
    assert said[1].startswith("harness could not report to trackio about gradients::lost: AttributeError: ")


def test_wandb_itself(tmp_path: Path) -> None:
    wandb = pytest.importorskip("wandb", reason="needs wandb")
    run = wandb.init(project="tests", mode="offline", dir=str(tmp_path))
    try:
        tell(ERROR)
        assert run.summary["harness/gradients::lost"] == LINE
    finally:
        run.finish()


def test_mlflow_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow = pytest.importorskip("mlflow", reason="needs mlflow", exc_type=ImportError)
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())  # it makes its first experiment with the folder
    with mlflow.start_run() as run:
        tell(ERROR)
    assert mlflow.get_run(run.info.run_id).data.tags["harness.gradients.lost"] == LINE
    (file,) = tmp_path.rglob("gradients.lost.json")
    assert json.loads(file.read_text())["observed"] == "another"


def test_trackio_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path))
    trackio = pytest.importorskip("trackio", reason="needs trackio")
    trackio.init(project="tests")
    try:
        tell(ERROR)
    finally:
        trackio.finish()
    (alert,) = trackio.Api().alerts("tests")
    assert (alert["title"], alert["level"]) == ("harness: gradients::lost", "error")


class SummaryWriter:
    """The part of torch's and tensorboardX's writers that is used."""

    def __init__(self) -> None:
        self.file_writer: object | None = object()
        self.texts: list[tuple[str, str, int | None]] = []

    def add_text(self, tag: str, text_string: str, global_step: int | None = None) -> None:
        self.texts.append((tag, text_string, global_step))

    def flush(self) -> None:
        pass


@pytest.mark.parametrize("library", ["torch.utils.tensorboard", "tensorboardX"])
def test_each_open_writer_of_tensorboard_gets_a_text(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    opened, closed = SummaryWriter(), SummaryWriter()
    closed.file_writer = None
    put(monkeypatch, library, SummaryWriter=SummaryWriter)
    tell(ERROR)
    ((tag, text, update),) = opened.texts
    assert (tag, update) == ("harness/gradients::lost", 12)
    assert all(line.startswith("    ") for line in text.splitlines())
    assert closed.texts == []


@pytest.mark.parametrize("library", ["torch.utils.tensorboard", "tensorboardX"])
def test_tensorboard_itself(library: str, tmp_path: Path) -> None:
    """And a closed writer is not opened again."""
    events = pytest.importorskip(
        "tensorboard.backend.event_processing.event_accumulator", reason="needs tensorboard", exc_type=ImportError
    )
    writers = pytest.importorskip(library, reason=f"needs {library}", exc_type=ImportError)
    closed = writers.SummaryWriter(str(tmp_path / "closed"))
    closed.close()
    files = len(list(tmp_path.rglob("events*")))
    with writers.SummaryWriter(str(tmp_path / "open")) as writer:
        writer.add_scalar("loss", 0.5, 1)
        tell(ERROR)
    assert len(list((tmp_path / "closed").rglob("events*"))) == files
    log = events.EventAccumulator(str(tmp_path / "open"))
    log.Reload()
    ((step, text),) = [
        (each.step, each.tensor_proto.string_val[0].decode())
        for each in log.Tensors("harness/gradients::lost/text_summary")
    ]
    assert step == 12
    assert "where     train.py:7, update 12" in text
