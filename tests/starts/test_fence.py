"""The fence around programs, and the paths outside that a script names."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from harness import processes
from harness.starts import fence
from harness.starts.levels import why_not
from harness.starts.outside import named


def fenced(tmp_path: Path, text: str) -> subprocess.CompletedProcess[str]:
    if (why := why_not("mirror")) is not None:
        pytest.skip(why)
    (tmp_path / "own").mkdir()
    rules = tmp_path / fence.RULES
    rules.write_text(json.dumps({"writable": [str(tmp_path / "own"), "/dev"], "log": str(tmp_path / fence.LOG)}))
    words = [sys.executable, "-I", "-S", fence.__file__, str(rules), "/bin/sh", "sh", "-c", text]
    return subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)


def test_a_program_writes_where_it_may_and_nowhere_else(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    done = fenced(tmp_path, "echo x > own/new; echo out; cat mine; echo more >> mine; exit 3")
    assert (done.returncode, done.stdout) == (3, "out\nmine")
    assert (tmp_path / "own" / "new").exists()
    assert (tmp_path / "mine").read_text() == "mine"
    (told,) = fence.refused_in(tmp_path)
    assert told["program"] == "sh"


def test_a_program_that_fails_by_itself_was_not_refused(tmp_path: Path) -> None:
    done = fenced(tmp_path, "echo 'fatal: not a git repository' >&2; exit 128")
    assert (done.returncode, done.stderr) == (128, "fatal: not a git repository\n")
    assert fence.refused_in(tmp_path) == []


def test_a_signal_that_ends_a_program_is_passed_on(tmp_path: Path) -> None:
    assert fenced(tmp_path, "kill -9 $$").returncode == -9


def test_what_nobody_may_write_was_not_refused_by_the_fence(tmp_path: Path) -> None:
    about = {"writable": [str(tmp_path)], "log": str(tmp_path / fence.LOG)}
    said = f"PermissionError: [Errno 13] Permission denied: '{tmp_path}/x'\ncat: '/proc/1/nothing': Permission denied\n"
    assert not fence._tell(about, "python", ["python"], 1, said.encode())


def test_a_script_names_paths_outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project, out, given, inside = (tmp_path / name for name in ("project", "out", "given", "project/data"))
    for folder in (project, out, given, inside):
        folder.mkdir()
    monkeypatch.setenv("RESULTS", str(given))
    monkeypatch.setenv("UNREAD", str(tmp_path))
    script = project / "train.py"
    script.write_text(f"import os\nos.environ['RESULTS']\nopen('{out}/new/model.pt')\nopen('{inside}/x')\n'/usr/bin'\n")
    assert sorted(named(str(script), [f"--to={tmp_path}/none"], [str(project)])) == [str(given), str(out)]


def test_processes_whose_parent_cannot_be_read_are_left_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    killed: list[int] = []
    monkeypatch.setattr(processes, "_processes", lambda: iter([1234567]))
    monkeypatch.setattr(processes, "_parent", lambda pid: None)
    monkeypatch.setattr("os.kill", lambda pid, number: killed.append(pid))
    processes.end_all(tmp_path)
    assert killed == []
