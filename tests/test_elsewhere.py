"""Where other people run it: the action and the pre-commit hook say what the command line accepts."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from harness.cli import main

ROOT = Path(__file__).parent.parent

STANDS_FOR_HARNESS = """#!/bin/sh
printf '%s\\n' "$@" >> "$CALLS/$(ls "$CALLS" | wc -l)"
echo "{}"
case "$*" in
*annotated*) echo "::error file=a.py,line=3,title=gradients%3A%3Anot-cleared%3A Old gradients.::expected none";;
*sarif*) echo '"ruleId": "rows::drawn-alike", "level": "error"';;
esac
for last; do :; done
case $last in [0-9]) exit "$last";; esac
"""


def read(name: str) -> Any:
    return yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))


def accepted(words: list[str]) -> dict[str, Any]:
    """The parameters of a command of harness, as click reads them."""
    command = main.commands[words[0]]
    assert isinstance(command, click.Command)
    return command.make_context(words[0], words[1:]).params


def test_the_hook_is_harness_check_without_a_script() -> None:
    (hook,) = read(".pre-commit-hooks.yaml")
    program, *words = shlex.split(hook["entry"])
    assert program == "harness"
    assert accepted(words)["script"] is None
    assert hook["pass_filenames"] is False
    assert hook["language"] == "python"


class Action:
    """The step of the action that checks, in a folder of its own, with something that stands for harness."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.step = {each["name"]: each for each in read("action.yml")["runs"]["steps"]}["Check"]
        for name in ("bin", "calls", "temp", "work"):
            (folder / name).mkdir()
        program = folder / "bin" / "harness"
        program.write_text(STANDS_FOR_HARNESS)
        program.chmod(0o755)
        self.output = folder / "output"

    def run(self, **given: str) -> tuple[int, list[list[str]], dict[str, str]]:
        """The exit status, what harness was called with, and the outputs."""
        inputs = {name: each["default"] for name, each in read("action.yml")["inputs"].items()} | given
        told = {f"${{{{ inputs.{name} }}}}": value for name, value in inputs.items()}
        environment = {
            "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}",
            "CALLS": str(self.folder / "calls"),
            "RUNNER_TEMP": str(self.folder / "temp"),
            "GITHUB_OUTPUT": str(self.output),
            "GITHUB_STEP_SUMMARY": str(self.folder / "summary"),
            **{name: told[value] for name, value in self.step["env"].items()},
        }
        command = ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", self.step["run"]]
        done = subprocess.run(command, cwd=self.folder / "work", env=environment, capture_output=True, text=True)
        assert done.stderr == ""
        calls = sorted((self.folder / "calls").iterdir(), key=lambda file: int(file.name))
        outputs = dict(line.split("=", 1) for line in self.output.read_text().splitlines())
        return done.returncode, [file.read_text().splitlines() for file in calls], outputs


@pytest.fixture
def action(tmp_path: Path) -> Action:
    return Action(tmp_path)


def test_the_action_without_scripts_checks_those_of_the_settings(action: Action) -> None:
    status, (call,), outputs = action.run(args="--updates 3 --select gradients,rows")
    assert (status, outputs) == (0, {"status": "0"})
    read = accepted(call)
    assert (read["script"], read["updates"], read["format_"]) == (None, 3, "github")
    assert read["select"] == ("gradients", "rows")


def test_the_action_checks_each_line_and_ends_with_the_highest_status(action: Action) -> None:
    status, calls, outputs = action.run(scripts="a.py 1\n\n  b.py --lr *  3\nc.py 0\n", format="sarif")
    assert (status, outputs["status"]) == (3, "3")
    assert [(accepted(call)["script"], accepted(call)["arguments"]) for call in calls] == [
        ("a.py", ("1",)),
        ("b.py", ("--lr", "*", "3")),
        ("c.py", ("0",)),
    ]
    assert {accepted(call)["format_"] for call in calls} == {"sarif"}
    assert sorted(file.name for file in Path(outputs["sarif"]).iterdir()) == ["1.sarif", "2.sarif", "3.sarif"]
    assert list((action.folder / "work").iterdir()) == []


@pytest.mark.parametrize(
    ("trainings", "words"),
    [("sft lora", ["baseline", "compare", "sft", "lora"]), ("all", ["baseline", "compare"])],
)
def test_the_action_compares_trainings_and_says_what_came_out(action: Action, trainings: str, words: list[str]) -> None:
    status, calls, _ = action.run(scripts="a.py 1\n b.py", trainings=trainings)
    assert (status, calls[2]) == (1, words)
    assert isinstance(main.commands["baseline"], click.Group)
    assert main.commands["baseline"].commands["compare"].make_context("compare", words[2:])
    summary = (action.folder / "summary").read_text()
    assert "| `a.py 1` | found |\n| `b.py` | no error |\n" in summary
    assert summary.count("| harness check |") == 1
    assert summary.endswith("**harness baseline compare**\n\n    {}\n")


def test_the_summary_names_what_was_found(action: Action) -> None:
    assert action.run(scripts="a.py --annotated 1")[0] == 1
    assert action.run(scripts="b.py 3", format="sarif")[0] == 3
    summary = (action.folder / "summary").read_text()
    assert "| `a.py --annotated 1` | found: `gradients::not-cleared` |\n" in summary
    assert "| `b.py 3` | the script crashed; found: `rows::drawn-alike` |\n" in summary


def test_the_action_with_trainings_alone_checks_no_script(action: Action) -> None:
    status, calls, _ = action.run(trainings="5")
    assert (status, calls) == (5, [["baseline", "compare", "5"]])


def test_an_input_of_the_action_is_no_code() -> None:
    """GitHub puts an input that stands in a script there as it is, whatever it says."""
    for step in read("action.yml")["runs"]["steps"]:
        assert "${{" not in step.get("run", "")


def test_the_action_installs_this_commit_or_the_version(tmp_path: Path) -> None:
    step = {each["name"]: each for each in read("action.yml")["runs"]["steps"]}["Install"]
    python = tmp_path / "python"
    python.write_text('#!/bin/sh\necho "$@"\n')
    python.chmod(0o755)
    for version, package in (("", "/an action/v1"), ("0.1.0", "full-training-harness==0.1.0")):
        environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "VERSION": version, "SOURCE": "/an action/v1"}
        done = subprocess.run(["bash", "-e", "-c", step["run"]], env=environment, capture_output=True, text=True)
        assert done.stdout == f"-m pip install {package}\n"
