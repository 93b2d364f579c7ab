"""What is printed where: colours on a terminal alone, JSON on stdout alone; and nothing printed ends a command."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from harness.cli import main
from harness.cli.options import script_arguments
from harness.cli.output import Format, Output, check_json
from harness.errors import CannotTry
from harness.findings import CheckOutcome, CheckResult, Finding, Outcome
from harness.report import sarif
from harness.report.colours import coloured
from harness.report.log import Log, LogEntry, Rule
from harness.report.terminal import outcome_lines, stage_lines
from tests.baseline.conftest import make_record

FINDING = Finding("one", "two", "mend it", "train.py:3", 2, "loss::not-finite", "error", "It is not finite.")

COMMAND = """
import sys
import click
from harness.cli import main
from harness.cli.output import echo

@main.command()
def talk():
    echo(f"  error: a::b: line {number}" for number in range(20_000))
    echo(["the end"], err=True)
    sys.exit(1 if "found" in sys.argv else 0)

main(["talk"])
"""


def talk(*arguments: str, **options: Any) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", COMMAND, *arguments]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, **options)


@pytest.mark.parametrize(("arguments", "status"), [((), 0), (("found",), 1)])
def test_a_reader_that_goes_ends_nothing(arguments: tuple[str, ...], status: int) -> None:
    with talk(*arguments, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "  error: a::b: line 0\n"
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == "the end\n"
    assert process.returncode == status


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize(("arguments", "status"), [((), 2), (("found",), 1)])
def test_a_full_stdout_is_one_sentence(arguments: tuple[str, ...], status: int) -> None:
    with open("/dev/full", "w") as full, talk(*arguments, stdout=full) as process:
        _, errors = process.communicate()
    assert process.returncode == status
    assert errors == (
        "the end\nharness: stdout cannot be written (No space left on device), so not everything was shown\n"
    )


def test_a_closed_stdout_is_none() -> None:
    with talk(preexec_fn=lambda: os.close(1)) as process:
        _, errors = process.communicate()
    assert (process.returncode, errors) == (0, "the end\n")


@pytest.mark.parametrize(("environment", "styled"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_colours_on_a_terminal(environment: dict[str, str], styled: bool) -> None:
    main, other = pty.openpty()
    try:
        with talk(stdout=other, env={**os.environ, "NO_COLOR": "", **environment}):
            first = os.read(main, 30)
            os.close(other)
            with suppress(OSError):  # which is how a terminal ends
                while os.read(main, 4096):
                    pass
    finally:
        os.close(main)
    assert first.startswith(b"\x1b[31m\x1b[1m  error: a::b\x1b[0m:" if styled else b"  error: a::b: line 0")


def test_a_finding_with_colours_says_what_it_says_without() -> None:
    for line in (*FINDING.lines(), "load        9 passed, 1 failed, 1 warned   0.3 s", "same seed   fails"):
        assert coloured(line) != line or "where" not in line
        assert click.unstyle(coloured(line)) == line
    assert (
        coloured("train       12 passed, 3 did not apply  49.3 s") == "train       12 passed, 3 did not apply  49.3 s"
    )


def test_a_warning_is_no_failure_in_the_line_of_its_stage() -> None:
    outcomes: list[tuple[Outcome, tuple[Finding, ...]]] = [
        ("holds", ()),
        ("fails", (FINDING,)),
        ("fails", (Finding("one", "two", "mend it", severity="warning"),)),
    ]
    made = [CheckResult(f"load::{outcome}", "load", "a", outcome, None, findings) for outcome, findings in outcomes]
    assert next(stage_lines("load", 1.0, made)) == f"load        {'1 passed, 1 failed, 1 warned':<34}    1.0 s"


def test_what_is_not_applicable_is_one_line() -> None:
    checks = [CheckOutcome(f"load::{n}", "load", "a", "not applicable", f"reason {n % 2}") for n in range(5)]
    record = make_record(checks=checks)
    said = [line for line in outcome_lines(record, None) if "apply" in line]
    assert said == ["5 checks did not apply: they are about other recipes or loops (-v names them)"]
    named = "\n".join(outcome_lines(record, None, verbose=True))
    assert "did not apply (reason 0):\n  load::0\n  load::2\n  load::4\ndid not apply (reason 1):\n  load::1" in named


def test_json_to_stdout_moves_the_lines(capsys: pytest.CaptureFixture[str]) -> None:
    out = Output(Path("-"))
    out.check()
    out.echo(["a line"])
    out.write_json("{}\n")
    assert capsys.readouterr() == ("{}\n", "a line\n")


FOUND = Log("check", [LogEntry(Rule("a", "error", "It is so."), "error", "b", "c")], [[]])
FORMS = {
    "json": "{}\n",
    "github": "::error title=a%3A b::c\n",
    "sarif": json.dumps(sarif.of_log(FOUND), indent=2) + "\n",
}


@pytest.mark.parametrize("form", ["text", *FORMS])
@pytest.mark.parametrize("github", [True, False])
def test_a_format_has_stdout_for_itself(
    form: Format, github: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", str(github).lower())
    out = Output(tmp_path / "found.json", format=form)
    out.check()
    out.echo(["a line"])
    out.write("{}", lambda: FOUND)
    assert (tmp_path / "found.json").read_text() == "{}\n"
    lines = "a line\n" + FORMS["github"] * (github and form != "github")
    assert capsys.readouterr() == ((lines, "") if form == "text" else (FORMS[form], lines))


def test_the_format_json_is_json_to_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    for out in (Output(format="json"), Output(Path("-")), Output(Path("-"), format="json")):
        out.check()
        out.echo(["a line"])
        out.write("{}", lambda: FOUND)
        assert capsys.readouterr() == ("{}\n", "a line\n")


def test_stdout_has_one_form_only() -> None:
    with pytest.raises(click.UsageError, match="--json - and --format sarif both write to stdout"):
        Output(Path("-"), format="sarif").check()


def test_json_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(CannotTry, match=r"nowhere/a\.json cannot be written \(No such file or directory\)"):
        check_json(tmp_path / "nowhere" / "a.json")
    if os.path.exists("/dev/full"):
        check_json(Path("/dev/full"))  # of a device only writing tells, and nothing is made beside it
        with pytest.raises(CannotTry, match="/dev/full cannot be written"):
            Output(Path("/dev/full")).write_json("{}")


NOT_OURS = {"notes.json": '{"schema": 1, "lr": 0.1}', "notes.txt": "mine", "train.py": "import torch", "a.ipynb": "{}"}
COMMANDS: tuple[str, ...] = (
    "check --json {} train.py",
    "compare --json {} train.py other.py",
    "claims --json {}",
    "matrix --json {} runs",
)
COMMANDS += ("explain --json {}", "tokens --json {} train.py", "resume --json {} train.py", "check --json {}")
COMMANDS += ("run --json {}", "baseline show --json {}", "baseline compare --json {} runs")


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("name", NOT_OURS)
def test_what_no_command_wrote_is_not_overwritten(
    command: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text(NOT_OURS["train.py"])
    Path(name).write_text(NOT_OURS[name])
    done = CliRunner().invoke(main, command.format(name).split())
    assert done.exit_code == 2
    assert done.stderr.startswith("harness: ")
    assert name in done.stderr
    assert Path(name).read_text() == NOT_OURS[name]


def test_a_report_and_an_empty_file_are_replaced(tmp_path: Path) -> None:
    file = tmp_path / "found.json"
    for command in (["claims"], ["explain", "gradients"], ["baseline", "show"], ["claims"]):
        file.touch()
        done = CliRunner().invoke(main, [*command, "--json", str(file)])
        assert done.exit_code == 0, done.output
        assert file.read_text()[0] in "[{"


def test_json_without_a_file_is_printed() -> None:
    for command in (
        ["explain", "gradients::lost", "--json"],
        ["explain", "--json", "gradients::lost"],
        ["claims", "--json"],
    ):
        done = CliRunner().invoke(main, command)
        assert (done.exit_code, done.stdout[0] in "[{") == (0, True)


@pytest.mark.parametrize(
    ("text", "arguments", "says"),
    [
        ("import sys", ["--strict"], "--strict comes after a.py, which does not mention it"),
        ("", ["--format=json"], "check --format … a.py; if it is for the script: check a.py -- --format=json …"),
        ("", ["1", "b.py"], "b.py comes after a.py, which would get it as an argument"),
        ("", ["--", "--strict"], None),
        ("", ["--lr", "1", "settings.py", "missing.py"], None),
        ("parser.add_argument('--strict')", ["--strict"], None),
        ("class Options:\n    strict: bool", ["--strict"], None),
        ("HfArgumentParser(TrainingArguments)", ["--strict"], None),
    ],
)
def test_what_follows_the_script_is_the_scripts_or_is_asked_about(
    text: str, arguments: list[str], says: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, said in {"a.py": text, "b.py": "import torch\n", "settings.py": "lr = 0.1\n"}.items():
        Path(name).write_text(said)
    with click.Context(main.commands["check"], info_name="check"):
        if says is None:
            assert script_arguments("a.py", tuple(arguments)) == tuple(each for each in arguments if each != "--")
        else:
            with pytest.raises(click.UsageError) as refused:
                script_arguments("a.py", tuple(arguments))
            assert says in refused.value.message


def test_a_stream_that_the_script_closed_is_written_all_the_same() -> None:
    code = "import sys; from harness.cli.output import say; sys.stderr.close(); say('the verdict', err=True)"
    done = subprocess.run([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True, check=True)
    assert done.stderr == "the verdict\n"
