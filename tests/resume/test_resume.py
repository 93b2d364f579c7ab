"""``harness resume`` as a user calls it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner

from harness.cli import main
from harness.resume import run
from tests.server import Done, server_of

ROOT = Path(__file__).parents[2]

SCRIPT = """
import os
import sys
import torch
from torch import nn

torch.manual_seed(SEED)
rows, labels = torch.randn(24, 4), torch.randint(2, (24,))
model = nn.Linear(4, 2)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
first = 0
if os.path.exists("checkpoint.pt") and GOES_ON:
    kept = torch.load("checkpoint.pt", weights_only=True)
    model.load_state_dict(kept["model"])
    optimizer.load_state_dict(kept["optimizer"])
    first = kept["batch"]
for batch in range(first, 12):
    chosen = slice(batch % 6 * 4, batch % 6 * 4 + 4)
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(rows[chosen]), labels[chosen]).backward()
    optimizer.step()
    if batch % 3 == 2 and KEEPS:
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "batch": batch + 1}
        torch.save(state, PATH + ".new")
        os.replace(PATH + ".new", PATH)
"""


def script(folder: Path, **changes: str) -> Path:
    given = {"SEED": "0", "GOES_ON": "True", "KEEPS": "True", "PATH": '"checkpoint.pt"'} | changes
    text = SCRIPT
    for name, value in given.items():
        text = text.replace(name, value)
    (folder / "train.py").write_text(text)
    return folder


def resume(config: pytest.Config, folder: Path, *arguments: str, **environment: str) -> Done:
    """``harness resume``, each start of the script a fork."""
    command = ("--command", "resume", *arguments)
    return server_of(config).run(folder, *command, program="tests.resume.forked", environment=environment)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["absent.py"], "there is no script absent.py"),
        (["--resume-args", "'", "train.py"], "cannot be read as a command line"),
    ],
)
def test_what_cannot_run(arguments: list[str], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(script(tmp_path))
    result = CliRunner().invoke(main, ["resume", *arguments])
    assert result.exit_code == 2
    assert says in result.output


@pytest.mark.slow
def test_a_script_that_survives(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    """Its own folder is as it was, and the report has the keys of the contract."""
    result = resume(pytestconfig, script(tmp_path), "--kills", "3", "--json", "report.json", "train.py")
    assert result.status == 0, result.stderr
    assert "train.py: 3 of 3 kills survived bit for bit, 12 updates" in result.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report.json", "train.py"]
    report = json.loads((tmp_path / "report.json").read_text())
    assert {"schema", "script", "kills", "findings"} <= set(report)
    assert (report["schema"], report["script"], report["findings"]) == (3, "train.py", [])
    for kill in report["kills"]:
        assert kill["resumed_from"] == (kill["at"] - 1) // 3 * 3, "the checkpoint before it"


@pytest.mark.slow
def test_temporary_files_may_lie_in_the_working_directory(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    """The copies are not copied into each other."""
    (tmp_path / "tmp").mkdir()
    temporary = {"TMPDIR": str(tmp_path / "tmp")}
    result = resume(pytestconfig, script(tmp_path), "--kills", "1", "train.py", **temporary)
    assert result.status == 0, result.stderr
    assert list((tmp_path / "tmp").glob("harness-*")) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"SEED": "os.getpid()"}, "differs between two uninterrupted runs"),
        ({"KEEPS": "False"}, "train.py keeps no checkpoint"),
        ({"PATH": "os.path.expanduser('~/harness-resume-test.pt')"}, "outside the working directory"),
        ({"SEED": "1 / 0"}, "ZeroDivisionError: division by zero"),
    ],
)
def test_scripts_that_cannot_be_judged(
    changes: dict[str, str], says: str, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "work").mkdir()
    result = resume(pytestconfig, script(tmp_path / "work", **changes), "train.py", HOME=str(tmp_path / "home"))
    assert result.status == 2, result.stderr
    assert says in result.stderr
    if "SEED" in changes and "getpid" in changes["SEED"]:
        assert "torch.manual_seed" in result.stderr


@pytest.mark.slow
def test_a_script_that_begins_anew(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    """Named with the line that saves; given --resume-args it is another start."""
    result = resume(pytestconfig, script(tmp_path, GOES_ON="'--resume' in sys.argv"), "train.py")
    assert result.status == 1, result.stderr
    assert "error: resume::began-anew" in result.stderr
    assert "where     train.py:24" in result.stderr
    assert "> 24 |" in result.stderr
    assert "whose checkpoint is checkpoint.pt\n" in result.stderr
    assert resume(pytestconfig, tmp_path, "--resume-args", "--resume", "train.py").status == 0


@pytest.mark.nightly
def test_a_script_that_hangs_after_the_kill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (
        script(tmp_path)
        .joinpath("train.py")
        .read_text()
        .replace("    kept =", "    import time; time.sleep(1e6)\n    kept =")
    )
    (tmp_path / "train.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(run, "PATIENCE", 2.0)
    monkeypatch.setattr(run, "LEAST_PATIENCE", 5.0)
    (found,) = run.resume_script("train.py", count=1).findings
    assert found.check == "resume::fails"
    assert re.fullmatch(r"it had not ended after \d+ s, 0 updates later", found.observed)


@pytest.mark.slow
@pytest.mark.parametrize(
    "number",
    [signal.SIGKILL, *(pytest.param(each, marks=pytest.mark.nightly) for each in (signal.SIGINT, signal.SIGTERM))],
)
def test_an_end_leaves_no_process_and_no_copy(number: signal.Signals, tmp_path: Path) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    (tmp_path / "work").mkdir()
    script(tmp_path / "work", SEED="0); import time; time.sleep(60); (0")
    process = subprocess.Popen(
        [sys.executable, "-m", "harness", "resume", "train.py"],
        cwd=tmp_path / "work",
        env=os.environ | {"TMPDIR": str(temporary), "PYTHONPATH": str(ROOT)},
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),  # a job in the background ignores it
    )
    until = time.monotonic() + 60
    while not list(temporary.glob("*/0/start-1/pid-0")) and time.monotonic() < until:
        time.sleep(0.1)
    pid = int(next(temporary.glob("*/0/start-1/pid-0")).read_text())
    process.send_signal(number)
    _, said = process.communicate(timeout=30)
    if number != signal.SIGKILL:
        assert (process.returncode, said.strip().splitlines()[-1]) == (2, "harness: interrupted")
    until = time.monotonic() + 10
    while (list(temporary.iterdir()) or runs(pid)) and time.monotonic() < until:
        time.sleep(0.1)
    assert list(temporary.iterdir()) == []
    assert not runs(pid)


def runs(pid: int) -> bool:
    """Whether there is such a process, and not only what nobody has asked of since it ended."""
    state = Path(f"/proc/{pid}/stat")
    try:
        return state.read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
