"""``harness check`` without SCRIPT: those of pyproject.toml, each in a process of its own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from harness.cli import main
from harness.report.check import script_lines
from harness.watch.script import CheckReport
from harness.watch.scripts import ScriptReport, ScriptsReport
from tests.server import Done, run_python, server_of

EXAMPLES = Path(__file__).parents[1] / "checks" / "gradients" / "not-cleared"
SEES = "import sys, os\nprint('mine')\nsys.exit(f'{sys.argv[1:]} in {os.path.basename(os.getcwd())}')\n"


def check(folder: Path, *options: str) -> Done:
    return run_python(folder, "-m", "harness", "check", *options)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for kind in ("bad", "good"):
        (tmp_path / f"{kind}.py").write_text((EXAMPLES / f"{kind}.py").read_text())
    (tmp_path / "sees.py").write_text(SEES)
    return tmp_path


def names(project: Path, *scripts: str) -> None:
    (project / "pyproject.toml").write_text(f"[tool.harness]\nscripts = {json.dumps(scripts)}\n")


@pytest.mark.slow
def test_each_script_of_the_table_is_checked(project: Path, pytestconfig: pytest.Config) -> None:
    (project / "below").mkdir()
    names(project, "good.py", "-m bad", "none.py", "sees.py 1 'a b'")
    options = ("--format", "json", "--json", "found.json", "--select", "gradients")
    done = server_of(pytestconfig).run(project / "below", "check", *options)
    assert done.status == 3, done.stderr
    found = json.loads(done.stdout)
    assert json.loads((project / "below" / "found.json").read_text()) == found
    good, bad, none, sees = found["scripts"]
    assert (good["script"], good["status"], good["report"]["findings"]) == ("good.py", 0, [])
    assert "loss::constant" not in good["report"]["held"], "--select is for all"
    assert (bad["script"], bad["status"]) == ("-m bad", 1)
    assert [each["check"] for each in bad["report"]["findings"]] == ["gradients::not-cleared"]
    assert none == {"script": "none.py", "status": 2, "report": None, "error": "there is no script none.py"}
    assert sees["status"] == 3
    assert f"['1', 'a b'] in {project.name}" in sees["report"]["crashed"]
    assert "mine" not in done.stderr
    said = [line.partition(": ")[0] for line in done.stderr.splitlines() if not line.startswith(" ")]
    assert [each for each in said if "ended itself" not in each] == ["good.py", "-m bad", "none.py", "sees.py 1 'a b'"]


def test_the_exit_status_is_the_highest() -> None:
    reports = [ScriptReport("a", status) for status in (0, 2, 1)]
    assert [ScriptsReport(reports[:count]).status for count in (1, 2, 3)] == [0, 2, 2]
    assert ScriptsReport([*reports, ScriptReport("b", 3)]).status == 3


def test_a_script_is_one_line() -> None:
    right = ScriptReport(
        "a.py 1", 0, CheckReport("a.py", held=["loss::constant"], seconds={"before the first batch": 1, "in all": 2})
    )
    (line,) = script_lines(right)
    assert line.startswith("a.py 1: nothing found in 0 updates; 2.0 s")
    assert list(script_lines(right, quiet=True)) == []
    assert "    passed: loss::constant" in list(script_lines(right, verbose=True))
    assert list(script_lines(ScriptReport("a.py", 2, error="no"), quiet=True)) == ["a.py: could not run: no"]


@pytest.mark.parametrize(
    ("arguments", "environment", "message"),
    [
        ((), {}, "no SCRIPT is given, and no pyproject.toml here or above names one"),
        (("-m",), {}, "name the SCRIPT"),
        ((), {"WORLD_SIZE": "2"}, "name the SCRIPT"),
    ],
)
def test_without_scripts_it_says_so(
    arguments: tuple[str, ...],
    environment: dict[str, str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner(env=environment).invoke(main, ["check", *arguments])
    assert result.exit_code == 2
    assert message in result.stderr


@pytest.mark.nightly
def test_stdout_has_what_a_program_reads_and_nothing_else(project: Path) -> None:
    """What the script and its child print goes to stderr."""
    script = "import os, subprocess\nprint('mine')\nsubprocess.run(['echo', 'the child'])\n" + SEES
    (project / "train.py").write_text(script.replace("sys.exit", "os._exit(3 if len(sys.argv) else 0) #"))
    for text in (script, (project / "train.py").read_text()):
        (project / "train.py").write_text(text)
        done = check(project, "--format", "json", "train.py")
        assert done.status == 3
        assert json.loads(done.stdout)["crashed"]
        assert "mine\n" in done.stderr
        assert "the child\n" in done.stderr
    done = check(project, "train.py")
    assert done.stdout.startswith(("mine\n", "the child\n"))
