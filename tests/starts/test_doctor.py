"""``harness doctor``: what a killed command left, and how scripts are isolated."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from harness.cli import main
from harness.put_back import Log, log_name, logs_folder
from harness.starts.levels import MEANS, chosen

Invoke = Callable[..., Result]


@pytest.fixture
def invoke(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Invoke:
    """Run a command with a cache folder of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: CliRunner().invoke(main, list(arguments))


@pytest.fixture
def left(tmp_path: Path, invoke: Invoke) -> Path:
    """A file that a command has left changed, of which the process is gone, and the one that puts back, too."""
    ended = subprocess.Popen([sys.executable, "-S", "-c", ""])
    ended.wait()
    file = tmp_path / "model.pt"
    file.write_text("trained")
    name = log_name("harness-run-x").replace(str(os.getpid()), str(ended.pid), 1)
    Log(logs_folder() / name / "1").changes(str(file))
    file.write_text("of a shortened run")
    return file


def test_it_says_how_scripts_are_isolated(invoke: Invoke) -> None:
    done = invoke("doctor")
    assert done.exit_code == 0, done.output
    assert f"isolation     {chosen()}: {MEANS[chosen()]}" in done.stdout
    assert "libraries     torch " in done.stdout
    assert "left changed" not in done.stdout


def test_what_a_killed_command_left_is_put_back(invoke: Invoke, left: Path) -> None:
    done = invoke("doctor")
    assert done.exit_code == 2
    assert f"left changed  {left}, by a killed command (" in done.stdout
    assert left.read_text() == "of a shortened run", "nothing is done unasked"
    assert (invoke("doctor", "--put-back").exit_code, left.read_text()) == (1, "of a shortened run"), "nobody agreed"
    done = invoke("doctor", "--put-back", "--yes")
    assert (done.exit_code, left.read_text()) == (0, "trained")
    assert "put back      what 1 killed command had changed" in done.stdout
    assert invoke("doctor").exit_code == 0


def test_the_next_command_says_so(invoke: Invoke, left: Path) -> None:
    says = "harness: a killed command left files changed; see harness doctor"
    assert says in invoke("check", "none.py").stderr
    invoke("doctor", "--put-back", "--yes")
    assert says not in invoke("check", "none.py").stderr


def test_what_cannot_be_put_back_is_said(invoke: Invoke, left: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("harness.put_back._restore", fails)
    done = invoke("doctor", "--put-back", "--yes")
    assert done.exit_code == 2
    assert (
        f"{left} (Permission denied) could not be restored; their contents are kept in {logs_folder()}" in done.stderr
    )
