"""The command line as a user meets it."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from harness.cli import SPINS, main
from harness.documented_run.recipe import Recipe
from harness.documented_run.record import RunRecord

Invoke = Callable[..., Result]


@pytest.fixture
def invoke(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Invoke:
    """Run a command in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HARNESS_DATA", raising=False)
    return lambda *arguments: CliRunner().invoke(main, list(map(str, arguments)))


def refused(result: Result, message: str) -> None:
    """Exit status 2, one sentence on stderr, no traceback, nothing written."""
    assert result.exit_code == 2, result.output
    assert message in result.stderr
    assert "Traceback" not in result.output
    assert list(Path.cwd().iterdir()) == []


@pytest.fixture
def small_file(small: Recipe, tmp_path_factory: pytest.TempPathFactory) -> str:
    file = tmp_path_factory.mktemp("recipe") / "mine.py"
    file.write_text(
        f"from harness.documented_run.recipe import Recipe\nsmall = {small!r}\nthree = small.with_(epochs=3)\n"
    )
    return f"{file}:small"


def test_run_shows_stages_and_figures(invoke: Invoke, small_file: str) -> None:
    result = invoke("run", "--recipe", small_file, "--json", "found.json")
    assert result.exit_code == 0, result.output
    for stage in ("load", "tokenize", "columns", "batches", "model", "optimizer", "schedule", "train", "evaluate"):
        assert f"\n{stage} " in result.stdout
    assert "16 updates, accuracy 0." in result.stdout
    assert re.search(
        r"^\d+ checks did not apply: they are about other recipes or loops \(-v names them\)$", result.stdout, re.M
    )
    (folder,) = Path("runs").iterdir()
    assert folder.name.startswith("small-plain-42-")
    assert f"written to {folder}" in result.stdout
    written = RunRecord.read(folder)
    assert RunRecord.read(Path("found.json")) == written
    held = [check.outcome for check in written.checks].count("holds")
    assert f"\n{held} of " in result.stdout


def test_options_change_the_recipe(invoke: Invoke, small_file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TQDM_DISABLE", raising=False)
    given = ("--seed", 7, "--loop", "plain", "--updates", 2, "--output", "out")
    result = invoke("run", "--recipe", small_file, *given, "--quiet", "--json", "-")
    assert result.exit_code == 0, result.output
    record = RunRecord.read(Path("out"))
    assert (record.recipe["seed"], record.updates) == (7, 2)
    assert result.stdout == record.as_json(), "with --quiet and --json - nothing but the record"
    assert "TQDM_DISABLE" not in os.environ, "what --quiet sets is there no longer than the command"
    assert "it/s" not in result.stderr
    assert "\nload" not in result.stderr


def test_finding_exits_with_1(invoke: Invoke, small_file: str) -> None:
    """The small corpus called MRPC: its figures are not MRPC's."""
    path = Path(small_file.partition(":")[0])
    path.write_text(path.read_text() + "fake = small.with_(dataset='glue/mrpc')\n")
    result = invoke("run", "--recipe", f"{path}:fake", "--output", "out", "--json", "found.json")
    assert result.exit_code == 1
    assert "error: load::split-sizes: The splits do not have the documented numbers of rows." in result.stdout
    assert "expected  {'train': 3668, 'validation': 408, 'test': 1725}" in result.stdout
    assert "observed  {'train': 60, 'validation': 20, 'test': 10}" in result.stdout
    assert "stopped at load" in result.stdout
    found = json.loads(Path("found.json").read_text())
    assert {finding["check"] for finding in found["findings"]} == {"load::split-sizes", "load::first-training-row"}


def test_unknown_recipe(invoke: Invoke) -> None:
    refused(invoke("run", "--recipe", "huge"), "unknown recipe 'huge': expected one of tiny, minilm, bert-base")


def test_missing_data(invoke: Invoke) -> None:
    refused(invoke("run", "--data", "nowhere"), "harness: data folder nowhere not found")


def test_missing_checkpoint(invoke: Invoke) -> None:
    refused(invoke("run", "--checkpoint", "./nowhere"), "harness: checkpoint folder ./nowhere not found")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "--loop", "magic"], "'magic' is not"),
        (["run", "--seed", "-1"], "-1 is not in the range"),
        (["run", "--updates", "0"], "0 is not in the range"),
        (["run", "--epochs", "1"], "No such option"),
        (["run", "--json", "nowhere/found.json"], "nowhere/found.json cannot be written (No such file or directory)"),
        (["fly"], "No such command"),
    ],
)
def test_bad_arguments(invoke: Invoke, arguments: list[str], message: str) -> None:
    refused(invoke(*arguments), message)


def test_impossible_recipe_is_named(invoke: Invoke, tmp_path_factory: pytest.TempPathFactory) -> None:
    file = tmp_path_factory.mktemp("recipe") / "mine.py"
    file.write_text("from harness.documented_run.recipe import Recipe\nbad = Recipe(lr=-1)\n")
    refused(invoke("run", "--recipe", f"{file}:bad"), "lr must be a finite number above 0, found -1")


def test_data_of_the_environment_is_for_recipes_without_their_own(
    invoke: Invoke,
    small_file: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HARNESS_DATA", "nowhere")
    refused(invoke("run", "--recipe", "minilm"), "data folder nowhere not found")
    assert invoke("run", "--recipe", small_file, "--updates", 1).exit_code == 0


def test_claims(invoke: Invoke) -> None:
    result = invoke("claims")
    assert result.exit_code == 0
    assert "num-training-steps" in result.stdout
    assert "1377" in result.stdout
    listed = json.loads(invoke("claims", "--json", "-").stdout)["claims"]
    steps = next(claim for claim in listed if claim["id"] == "num-training-steps")
    assert (steps["stage"], steps["kind"], steps["expected"]["glue/mrpc"]) == ("schedule", "exact", 1377)
    assert steps["checks"] == ["schedule::documented-number-of-updates"]
    assert len(listed) == len(result.stdout.splitlines()) - 1


def test_claims_fit_on_a_terminal() -> None:
    from harness.documented_run.stages import checks_of_claims
    from harness.report.terminal import claims_lines

    lines = list(claims_lines(checks_of_claims(), 80))
    assert max(map(len, lines)) == 80
    assert lines[0].split() == ["ID", "STAGE", "SAYS"]


def test_help_names_every_exit_status(invoke: Invoke) -> None:
    result = invoke("--help")
    assert result.exit_code == 0
    says = " ".join(result.stdout.split())
    assert "0 nothing was found (or only warnings), 1 something was found, 2 the command could not run, 3" in says


@pytest.mark.parametrize("group", [(), ("baseline",)])
def test_help_cuts_no_summary(invoke: Invoke, group: tuple[str, ...]) -> None:
    commands = invoke(*group, "--help").stdout.partition("  -h, --help  Show this message and exit.\n")[2]
    summaries = re.findall(r"^  .+$", commands, re.MULTILINE)
    assert len(summaries) >= 4
    assert [line for line in summaries if not line.endswith(".") or line.endswith("..")] == []


def test_help_shows_every_command_in_a_group(invoke: Invoke) -> None:
    says = invoke("--help").stdout
    assert sorted(re.findall(r"^  (\w+)  +\w", says.partition("Your script:\n")[2], re.MULTILINE)) == sorted(
        main.commands
    )
    headings = re.findall(r"^(\w.+):$", says, re.MULTILINE)
    assert headings == ["Options", "Your script", "Pinned runs", "The documented run", "This machine"]


def leaves(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command that has no commands of its own, with the words that call it."""
    if not isinstance(command, click.Group):
        yield path, command
        return
    for name, each in command.commands.items():
        yield from leaves(each, (*path, name))


@pytest.mark.parametrize(
    ("path", "command"), list(leaves(main)), ids=lambda given: " ".join(given) if isinstance(given, tuple) else ""
)
def test_help_ends_with_examples_that_can_be_called(
    invoke: Invoke, path: tuple[str, ...], command: click.Command
) -> None:
    examples = invoke(*path, "--help").stdout.partition("\n  Examples:\n")[2].splitlines()
    assert examples
    for example in examples:
        words = shlex.split(example)
        assert words[: 1 + len(path)] == ["harness", *path]
        command.make_context(words[0], words[1 + len(path) :])


def test_check_shows_how_to_name_a_module(invoke: Invoke) -> None:
    assert "harness check -m package.train" in invoke("check", "--help").stdout


def test_a_summary_is_in_words(invoke: Invoke) -> None:
    assert "name its silent bugs" in invoke("check", "--help").output


def test_module_and_version() -> None:
    command = [sys.executable, "-m", "harness", "--version"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.startswith("harness, version 0")


def test_threads_spin_briefly_unless_told_otherwise() -> None:
    """Said before torch is imported, which reads it then."""
    code = "import os, sys\nfrom harness.cli import main\ntry:\n    main(['claims', '--help'])\nexcept SystemExit:\n"
    code += "    print('set to', os.environ.get('GOMP_SPINCOUNT'), 'torch' in sys.modules)"
    bare = {name: value for name, value in os.environ.items() if name not in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")}
    for more, expected in (({}, SPINS), ({"GOMP_SPINCOUNT": "5"}, "5"), ({"OMP_WAIT_POLICY": "ACTIVE"}, "None")):
        done = subprocess.run([sys.executable, "-c", code], env=bare | more, capture_output=True, text=True, check=True)
        assert done.stdout.splitlines()[-1] == f"set to {expected} False"


LACKING = """
import sys
for name in ("accelerate", "datasets", "evaluate", "huggingface_hub", "jinja2", "libcst", "scipy", "transformers"):
    sys.modules[name] = None  # as if it were not installed
from harness.cli import main
main(sys.argv[1:])
"""


@pytest.mark.parametrize(
    ("arguments", "status", "says"),
    [
        (["check", "train.py"], 1, "gradients::not-cleared"),
        (
            ["check", "--diff", "train.py"],
            2,
            'needs libcst, which is not installed; pip install "full-training-harness[fix]"',
        ),
        (["run"], 2, 'pip install "full-training-harness[run]"'),
    ],
    ids=["check", "diff", "run"],
)
def test_a_script_is_watched_without_the_libraries_of_the_run(
    tmp_path: Path, arguments: list[str], status: int, says: str
) -> None:
    shutil.copy(Path(__file__).parent / "checks/gradients/not-cleared/bad.py", tmp_path / "train.py")
    command = [sys.executable, "-c", LACKING, *arguments]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stderr
    assert says in done.stderr
    assert "Traceback" not in done.stderr
