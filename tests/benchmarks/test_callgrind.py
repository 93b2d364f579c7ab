"""Counting itself: what is asked of valgrind, what is read from its files, and what is said where it cannot be used."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from harness.errors import CannotTry
from tests.benchmarks import callgrind
from tests.benchmarks.callgrind import ENVIRONMENT, MACHINE, ROOT, counted, tool, total
from tests.benchmarks.counted_loop import UPDATES

COUNTING = """
import sys
from tests.benchmarks.callgrind import START, STOP, instrument

instrument(START)
for turn in range(int(sys.argv[1])):
    pass
instrument(STOP)
for turn in range(100_000):
    pass
"""

PRETENDED = f"""#!{sys.executable}
import json, os, sys
if "--version" in sys.argv:
    sys.exit(print("valgrind-3.99.0"))
folder = next(each for each in sys.argv if each.startswith("--log-file=")).removeprefix("--log-file=")[:-7]
here = sys.argv[sys.argv.index("tests.benchmarks.counted") + 1:]
if here == ["fails"]:
    sys.exit("==1== cannot allocate\\n")
for pid, order in enumerate(here):
    open(f"{{folder}}/{{pid}}.out", "w").write(f"events: Ir\\ntotals: {{1000 * (pid + 1)}}\\n")
seen = dict(os.environ)
print(json.dumps({{"pids": dict(zip(here, range(9))), "fingerprint": {{"environment": seen, "device": "cpu"}}}}))
"""


@pytest.fixture
def pretended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A valgrind that counts 1000 instructions for the first order, 2000 for the second."""
    path = tmp_path / "valgrind"
    path.write_text(PRETENDED)
    path.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(platform, "machine", lambda: MACHINE)


@pytest.mark.nightly
@pytest.mark.skipif(
    shutil.which("valgrind") is None or platform.machine() != MACHINE, reason=f"needs valgrind on {MACHINE}"
)
def test_what_is_between_the_requests_is_counted(tmp_path: Path) -> None:
    def instructions(turns: int) -> int:
        out = tmp_path / "callgrind.out"
        command = ["valgrind", "--tool=callgrind", "-q", "--instr-atstart=no", f"--callgrind-out-file={out}"]
        command += [sys.executable, "-c", COUNTING, f"{turns}"]
        subprocess.run(command, cwd=ROOT, env=os.environ | ENVIRONMENT, check=True, timeout=120)
        return total(out)

    one, two, again = instructions(10_000), instructions(20_000), instructions(10_000)
    assert one == pytest.approx(again, rel=1e-3)
    assert two - one > 10_000
    assert one < 1.5 * (two - one), "and not the turns after them"


def test_outside_valgrind_a_request_does_nothing() -> None:
    done = subprocess.run([sys.executable, "-c", COUNTING, "1"], cwd=ROOT, check=False, timeout=60)
    assert done.returncode == 0


@pytest.mark.nightly
def test_each_way_trains_and_finds_nothing() -> None:
    """Without valgrind, which would count the same code."""
    command = [sys.executable, "-m", "tests.benchmarks.counted", "unwatched", "watch", "check", "trace", "check+10"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)["pids"]) == 5


def test_a_count_is_of_an_update_and_nothing_else_is_seen(pretended: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONHASHSEED", "5")
    monkeypatch.setenv("LONG", "x" * 1000)
    found, fingerprint = counted(("unwatched", "check"))
    assert found == {"unwatched": 1000 / UPDATES, "check": 2000 / UPDATES}
    assert fingerprint["tool"] == "valgrind-3.99.0"
    assert set(fingerprint["environment"]) - {"LC_CTYPE"} <= {*ENVIRONMENT, *callgrind.KEPT}
    assert fingerprint["environment"]["PYTHONHASHSEED"] == "0"


def test_a_tool_that_fails_is_named_with_what_it_said(pretended: None) -> None:
    with pytest.raises(CannotTry, match=r"^valgrind-3\.99\.0 ended with status 1: ==1== cannot allocate$"):
        counted(("fails",))


def test_a_tool_that_does_not_end_is_named(pretended: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(callgrind, "TIMEOUT", 0.0)
    with pytest.raises(CannotTry, match=r"valgrind-3\.99\.0 did not end within 0 s"):
        counted(("check",))


def test_no_tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: MACHINE)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CannotTry, match="valgrind, which counts instructions, is not on PATH; install it"):
        tool()
    (tmp_path / "valgrind").write_text("#!/bin/sh\necho no such library >&2\nexit 3\n")
    (tmp_path / "valgrind").chmod(0o755)
    with pytest.raises(CannotTry, match="valgrind --version failed with status 3: no such library"):
        tool()
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    with pytest.raises(CannotTry, match="counted on x86_64 only, and this machine is aarch64"):
        tool()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, r"callgrind left no 7\.out \(No such file or directory\)"),
        ("", r"7\.out of callgrind has no line with its totals; expected one such as totals: 1234"),
        ("totals: many\n", "no line with its totals"),
        ("events: Ir\ntotals: 0\n", "has counted nothing: the updates that are counted were not reached"),
    ],
)
def test_files_that_tell_no_count(tmp_path: Path, text: str | None, message: str) -> None:
    path = tmp_path / "7.out"
    if text is not None:
        path.write_text(text)
    with pytest.raises(CannotTry, match=message):
        total(path)


def test_a_file_that_tells_a_count(tmp_path: Path) -> None:
    path = tmp_path / "7.out"
    path.write_text("version: 1\nevents: Ir\nfn=(1) main\n0 12\n\ntotals: 1234567\n")
    assert total(path) == 1234567
