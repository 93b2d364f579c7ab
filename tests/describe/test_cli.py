"""``harness describe``, and the trainings of ``harness baseline`` and pytest, as they are run."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import harness.documented_run.run  # noqa: F401  # pytester forgets what is first imported in an inner session; torch minds that
from harness.baseline import same_training, training_file, trainings
from harness.baseline.settings_table import lines_of
from harness.cli import main
from harness.describe.description import Description, Line
from harness.errors import CannotTry
from harness.findings import Finding
from harness.settings import Training, Way
from harness.settings import trainings as named
from harness.vary import run as vary_run
from harness.vary.relation import Result
from harness.vary.run import RelationReport, VaryReport
from tests.baseline.test_trainings import LINES, run
from tests.server import server_of

pytest_plugins = ["pytester"]

TRAINS = """
import sys
import torch
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    model(torch.ones(4, 2)).sum().backward()
    optimizer.step()
"""
RANKS = """
import os, sys
import torch
from torch.nn.functional import cross_entropy
ranks, rank = int(os.environ.get("WORLD_SIZE", 1)), int(os.environ.get("RANK", 0))
torch.manual_seed(0)
rows, labels = torch.randn(64, 4), torch.randint(3, (64,))
model = torch.nn.Linear(4, 3)
if ranks > 1:
    torch.distributed.init_process_group("gloo")
    model = torch.nn.parallel.DistributedDataParallel(model)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
for batch in torch.arange(64).split(8):
    mine = batch[rank::ranks]
    optimizer.zero_grad()
    loss = cross_entropy(model(rows[mine]), labels[mine])
    (loss / ranks if "--scaled" in sys.argv else loss).backward()
    optimizer.step()
"""
PROJECT = """
[tool.harness]
[[tool.harness.training]]
name = "small"
script = "train.py --epochs 1"
"""


def test_a_script_is_described_and_its_output_is_left_alone(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    (tmp_path / "train.py").write_text(TRAINS + "print('done')\n")
    done = server_of(pytestconfig).run(tmp_path, "describe", "train.py", together="watched")
    assert done.status == 0
    assert "update      3 updates by SGD" in done.stdout
    assert "(train.py:8)" in done.stdout
    assert "done" in done.stderr  # as harness tokens does: stdout is the page


@pytest.mark.parametrize(("status", "exits"), [(0, 0), (5, 3)])
def test_a_script_that_leaves_its_process_is_described_before(
    status: int, exits: int, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    (tmp_path / "train.py").write_text(f"{TRAINS}import os\nos._exit({status})\n")
    done = server_of(pytestconfig).run(tmp_path, "describe", "--json", "found.json", "train.py", together="watched")
    assert done.status == exits
    assert "update      3 updates by SGD" in done.stdout
    assert json.loads((tmp_path / "found.json").read_text())["updates"] == 3


@pytest.mark.parametrize(
    ("source", "status", "said"),
    [
        (TRAINS + "raise ValueError('the end')\n", 3, "ValueError: the end"),
        ("print('nothing')\n", 2, "made no optimizer step in this process"),
        ("def broken(:\n", 2, "is not Python"),
    ],
)
def test_what_cannot_be_described(
    source: str, status: int, said: str, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    (tmp_path / "train.py").write_text(source)
    done = server_of(pytestconfig).run(tmp_path, "describe", "--json", "found.json", "train.py", together="watched")
    assert done.status == status
    assert said in done.stderr
    assert (tmp_path / "found.json").exists() == (status == 3)
    if status == 3:
        assert "SGD.steps" in (tmp_path / "found.json").read_text()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[[tool.harness.training]]\nname = "a"\n', "has a name and a script"),
        ('[[tool.harness.training]]\nname = "a/b"\nscript = "t.py"\n', "of letters, digits"),
        ('[[tool.harness.training]]\nname = "a"\nscript = " "\n', "the script of training a"),
        ('[[tool.harness.training]]\nname = "a"\nscript = "-v"\n', "training a: '-v' begins with an option"),
        (PROJECT + 'same-as = "-x"\n', "same-as of training small is a list of arguments"),
        (PROJECT + 'same-as = ["--processes 1"]\n', "--processes takes a number from 2 on"),
        (PROJECT + 'same-as = ["\'"]\n', 'same-as of training small: "\'" cannot be read'),
        (PROJECT + 'ignore = "data.*"\n', "ignore of training small is a list of patterns of facts; found 'data.*'"),
        (PROJECT + "tolerance = 0.1\n", "tolerance of training small is a table of patterns of facts; found 0.1"),
        (PROJECT + "tolerance = {a = -1}\n", "tolerance of training small for 'a' is a number from 0 on; found -1"),
        (PROJECT + "tolerance = {a = true}\n", "for 'a' is a number from 0 on; found True"),
        (PROJECT + 'vary = "all"\n', "vary of training small is true or false; found 'all'"),
        ('[tool.harness.training]\nname = "a"\nscript = "t.py"\n', "with two brackets"),
        (PROJECT + PROJECT.replace("[tool.harness]\n", ""), "dots, dashes and underscores; found 'small'"),
    ],
)
def test_an_entry_that_is_wrong_is_named(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(text)
    with pytest.raises(CannotTry) as error:
        named(tmp_path)
    assert said in str(error.value)
    assert "pyproject.toml" in str(error.value)


WRONG = Way(("--batch", "4", "--accumulate", "2"))
"""Forgets to divide the loss."""

Does = Callable[[Description], None]


@pytest.fixture
def does(monkeypatch: pytest.MonkeyPatch) -> Does:
    """What the scripts do when they are run."""
    monkeypatch.delenv("CI", raising=False)

    def given(description: Description) -> None:
        def described(training: Training, folder: Path, env: Any = None, way: Way | None = None) -> Description:
            return replace(description, numbers={"loss": [1.4, 1.2, 0.5]}) if way == WRONG else description

        monkeypatch.setattr(trainings, "described", described)
        monkeypatch.setattr(same_training, "described", described)

    return given


@pytest.fixture
def project(pytester: pytest.Pytester) -> Path:
    (pytester.path / "pyproject.toml").write_text(PROJECT)
    (pytester.path / "train.py").write_text(TRAINS)
    return pytester.path


FEWER = run(replace(LINES[0], text="train: 52 rows", facts={**LINES[0].facts, "data.train.rows": 52}), *LINES[1:])


def cli(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, ["baseline", *arguments])
    return result.exit_code, result.output


def test_a_training_is_recorded_compared_shown_and_accepted(project: Path, does: Does) -> None:
    does(run())
    status, said = cli("record", "small")
    assert (status, "small: 7 facts of 8 updates" in said) == (0, True), said
    assert cli("compare")[0] == 0
    assert "data.train.rows = 60" in cli("show", "small")[1]
    for command in (["init", "-q"], ["add", "."], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x"]):
        subprocess.run(["git", *command], cwd=project, check=True)

    does(FEWER)
    status, said = cli("compare", "small", "--json", "found.json")
    assert (status, "data.train.rows: 60 -> 52" in said) == (1, True), said
    found = json.loads((project / "found.json").read_text())
    assert found["trainings"][0]["changed"]["data"][0] == {"key": "data.train.rows", "was": 60, "now": 52}
    status, said = cli("accept", "small", "data", "--why", "long ones are left out")
    assert (status, "commit it with the change" in said) == (0, True), said
    assert cli("compare")[0] == 0
    assert "# accepted: data at " in (project / "baselines" / "small.txt").read_text()


def test_facts_that_pyproject_ignores_or_tolerates_do_not_fail(project: Path, does: Does) -> None:
    does(run())
    cli("record", "small")
    does(replace(FEWER, numbers={"loss": [0.7, 0.6, 0.51], "metric.f1.f1": [0.8]}))
    assert cli("compare")[0] == 1
    (project / "pyproject.toml").write_text(
        f'{PROJECT}ignore = ["data.train.*"]\ntolerance = {{"numbers.loss" = 0.02}}\n'
    )
    status, said = cli("compare")
    assert (status, said.splitlines()[1:]) == (0, ["  ignored, though it differs: data.train.rows"])


def test_what_was_observed_is_written_beside_what_was_expected(project: Path, does: Does) -> None:
    does(run())
    cli("record", "small")
    does(FEWER)
    assert cli("compare", "--observed", "seen")[0] == 1
    expected, observed = (Path(each, "small.txt").read_text().splitlines() for each in ("baselines", "seen"))
    apart = [each for each in zip(expected, observed, strict=True) if each[0] != each[1]]
    assert apart == [("# train: 60 rows", "# train: 52 rows"), ("data.train.rows = 60", "data.train.rows = 52")]
    status, said = cli("compare", "--observed", "baselines")
    assert (status, "--observed is the folder of the baselines" in said) == (2, True), said
    status, said = cli("compare", "--seeds", "1", "--recipe", "tiny", "--observed", "seen")
    assert (status, "--observed is for a [[tool.harness.training]]" in said) == (2, True), said


def test_what_is_wrong_with_a_call_is_said(project: Path, does: Does) -> None:
    does(run())
    cli("record", "small")
    for arguments, part in (
        (["accept", "small", "--why", "x"], "name the SECTION to accept"),
        (["accept", "tiny", "data", "--why", "x"], "no training tiny; there are small"),
        (["compare", "small", "--seeds", "2"], "--seeds says what to train"),
    ):
        status, said = cli(*arguments)
        assert (status, part in said) == (2, True), said


def test_a_baseline_that_is_left_over_fails(project: Path, does: Does) -> None:
    does(run())
    cli("record", "small")
    (project / "baselines" / "small.txt").rename(project / "baselines" / "old.txt")
    (project / "pyproject.toml").write_text(PROJECT)
    cli("record", "small")
    status, said = cli("compare")
    assert status == 1
    assert "old.txt is of a training that pyproject.toml no longer names: delete it" in said


def pytests(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    return pytester.runpytest_inprocess("-p", "no:cacheprovider", "-p", "no:xdist", "-rs", *arguments)


def test_pytest_has_a_test_for_each_section(project: Path, pytester: pytest.Pytester, does: Does) -> None:
    does(run())
    cli("record", "small")
    sections = len(training_file.sections())  # that of the checks, and not that of the settings
    pytests(pytester, "--harness-training").assert_outcomes(passed=sections)

    lines = [*FEWER.lines[:3], replace(LINES[3], facts={**LINES[3].facts, "update.SGD.steps": 7})]
    does(run(*lines))
    result = pytests(pytester, "--harness-training")
    result.assert_outcomes(failed=1, skipped=1, passed=sections - 2)
    result.stdout.fnmatch_lines(["*small[[]data]*", "small: data differs from the baseline (train.py:7)"])
    result.stdout.fnmatch_lines(["SKIPPED*also differs, maybe because of data"])


def table(**effects: str) -> list[Line]:
    return lines_of([{"name": n, "shown": f"{n} = 1", "where": "train.py:3", "effect": e} for n, e in effects.items()])


def test_a_setting_that_loses_its_effect_is_named(
    project: Path, pytester: pytest.Pytester, does: Does, monkeypatch: pytest.MonkeyPatch
) -> None:
    does(run())
    cli("record", "small")
    (project / "pyproject.toml").write_text(f"{PROJECT}settings = true\n")
    monkeypatch.setattr(trainings, "settings_lines", lambda training, folder: table(lr="training", decay="training"))
    assert "settings.train.py.decay: was absent" in cli("compare", "small")[1], "its baseline has no table yet"
    assert cli("accept", "small", "settings", "--why", "a table")[0] == 0
    pytests(pytester, "--harness-training").assert_outcomes(passed=1 + len(training_file.sections()))

    monkeypatch.setattr(trainings, "settings_lines", lambda training, folder: table(lr="training", decay="nothing"))
    result = pytests(pytester, "--harness-training")
    result.assert_outcomes(failed=1, passed=len(training_file.sections()))
    result.stdout.fnmatch_lines(
        [
            "small: settings differ from the baseline (train.py:3)",
            '*settings.train.py.decay: "changes the training" -> "changes nothing"',
        ]
    )
    (project / "pyproject.toml").write_text(PROJECT)
    assert cli("compare", "small")[0] == 0, "without settings = true nobody asks for the table"


def test_settings_of_one_name_are_numbered_by_their_lines() -> None:
    """A report has those first that change most: one that loses its effect must not take another one's number."""
    names = [{"name": "lr", "shown": "lr = 1", "where": f"a.py:{line}", "effect": e} for line, e in LATE_FIRST]
    assert [[*line.facts.items()] for line in lines_of(names)] == [
        [("settings.a.py.lr", "changes nothing")],
        [("settings.a.py.lr#2", "changes the training")],
    ]


LATE_FIRST = ((10, "training"), (9, "nothing"))


def test_settings_of_one_name_are_numbered() -> None:
    names = [
        {"name": "lr", "shown": f"{of}(lr) = 1", "where": "a/b.py:3", "effect": "output"} for of in ("SGD", "Adam")
    ]
    assert [line.facts for line in lines_of([*names])] == [
        {"settings.a/b.py.lr": "changes only what is printed or saved"},
        {"settings.a/b.py.lr#2": "changes only what is printed or saved"},
    ]


@pytest.fixture
def in_other_ways(project: Path) -> Path:
    (project / "pyproject.toml").write_text(f'{PROJECT}same-as = ["--processes 2", "--batch 4 --accumulate 2"]\n')
    return project


def test_a_training_is_held_to_the_ways_in_which_it_is_the_same(in_other_ways: Path, does: Does) -> None:
    does(run())
    result = CliRunner().invoke(main, ["compare", "--json", "found.json", "small"])
    assert result.exit_code == 1, result.output
    assert result.output.splitlines() == [
        "small: train.py --epochs 1",
        "  --processes 2: the same in 2 updates; loss at most 0.0e+00 apart",
        "  --batch 4 --accumulate 2: NOT the same training",
        "    loss of update 1: 0.7 -> 1.4, 2 times it",
    ]
    assert json.loads((in_other_ways / "found.json").read_text())["kind"] == "same-training"
    one = CliRunner().invoke(main, ["compare", "--processes", "1,2", "train.py"])
    assert (one.exit_code, one.output.splitlines()[1]) == (0, result.output.splitlines()[1])
    with_arguments = CliRunner().invoke(main, ["compare", "--processes", "1,2", "--args-b=--batch 4", "train.py"])
    assert with_arguments.output.splitlines()[1].startswith("  --processes 2 --batch 4: "), "those are of the second"


def test_pytest_has_a_test_for_each_way(in_other_ways: Path, pytester: pytest.Pytester, does: Does) -> None:
    does(run())
    result = pytests(pytester, "--harness-training", "-k", "same")
    result.assert_outcomes(passed=1, failed=1, deselected=len(training_file.sections()))
    result.stdout.fnmatch_lines(
        ["*small[[]same as --batch 4 --accumulate 2]*", "*loss of update 1: 0.7 -> 1.4, 2 times*"]
    )


BROKEN = Finding("the same", "another", "look", "train.py:1", check="depends::on-workers", message="It is another.")


@pytest.mark.parametrize(
    ("result", "outcome"), [("held", "passed"), ("broken", "failed"), ("did not apply", "skipped")]
)
def test_pytest_varies_a_training(
    result: Result, outcome: str, project: Path, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    def vary_script(script: str, arguments: Sequence[str], *, module: bool) -> VaryReport:
        assert (Path.cwd(), script, module) == (project, "train.py", False)
        findings = [BROKEN] if result == "broken" else []
        relations = [RelationReport("depends::on-workers", "with workers", result)]
        return VaryReport(script, 8, relations=relations, findings=findings, seconds={"one start": 1.0, "in all": 3.0})

    monkeypatch.setattr(vary_run, "vary_script", vary_script)
    (project / "pyproject.toml").write_text(f"{PROJECT}vary = true\n")
    done = pytests(pytester, "--harness-training", "-k", "vary")
    done.assert_outcomes(**{outcome: 1, "deselected": len(training_file.sections())})
    assert ("depends::on-workers: It is another." in done.stdout.str()) == (result == "broken")


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["small"], 2, "training small has no same-as"),
        (["--processes", "2", "train.py"], 2, "--processes takes 1,N with an N from 2 on; found 2"),
        (["--processes", "1,2", "--python-b=x", "train.py"], 2, "--processes takes one script"),
    ],
)
def test_what_cannot_be_held_to_it_is_said(words: list[str], status: int, said: str, project: Path) -> None:
    result = CliRunner().invoke(main, ["compare", *words])
    assert (result.exit_code, said in result.output) == (status, True), result.output


def test_pytest_says_what_could_not_be_compared(project: Path, pytester: pytest.Pytester, does: Does) -> None:
    does(run())
    result = pytests(pytester, "--harness-training", "-k", "data")
    result.assert_outcomes(failed=1, deselected=len(training_file.sections()) - 1)
    result.stdout.fnmatch_lines(["*training small has no baseline*record it with harness baseline record small*"])
    (project / "pyproject.toml").write_text("")
    assert "names no training" in str(
        pytests(pytester, "--harness-training").outlines + pytests(pytester, "--harness-training").errlines
    )


def test_without_the_option_pytest_runs_no_training(project: Path, pytester: pytest.Pytester) -> None:
    assert pytests(pytester).ret == pytest.ExitCode.NO_TESTS_COLLECTED


def test_the_fixture_compares_one_training(project: Path, pytester: pytest.Pytester, does: Does) -> None:
    pytester.makepyfile("def test_small(training): training('small')\ndef test_other(training): training('other')\n")
    does(run())
    cli("record", "small")
    result = pytests(pytester)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*pyproject.toml names no training other; it has*small*"])
    does(FEWER)
    pytests(pytester).assert_outcomes(failed=2)


@pytest.fixture
def small(tmp_path: Path) -> tuple[Path, Training]:
    (tmp_path / "pyproject.toml").write_text(PROJECT)
    (tmp_path / "train.py").write_text(TRAINS.replace("import torch\n", "import torch\ntorch.manual_seed(0)\n"))
    folder, (training,) = named(tmp_path)
    return folder, training


@pytest.mark.slow
def test_a_real_script_is_run_in_a_process_of_its_own(small: tuple[Path, Training]) -> None:
    folder, training = small
    found = trainings.described(training, folder)
    assert (found.updates, found.facts["update.SGD.steps"], found.script) == (3, 3, "train.py")


@pytest.mark.nightly
def test_a_real_script_is_the_same_in_two_processes(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(RANKS)
    ways = [Way(processes=2), Way(("--scaled",), processes=2)]
    found = same_training.same_training(Training("ranks", ["train.py"], ways), tmp_path)
    right, scaled = found.ways
    assert (right.apart, right.updates) == ([], 8)
    assert {each.key.partition(".")[0]: each.times for each in scaled.apart} == {"loss": "1/2", "gradient_norm": "1/2"}


@pytest.mark.nightly
def test_a_real_script_is_recorded_and_what_it_does_otherwise_is_seen(small: tuple[Path, Training]) -> None:
    folder, training = small
    stored, found = trainings.record(training, folder)
    assert found.updates == 3
    assert stored.facts["update.SGD.steps"] == 3
    assert training_file.VARIES not in stored.facts.values()
    script = folder / "train.py"
    script.write_text(script.read_text().replace("lr=0.1", "lr=0.2"))
    changed = trainings.compare(training, folder, stored).changed
    assert next(iter(changed)) == "optimizer"
    script.write_text("print(1)\n")
    with pytest.raises(CannotTry, match="training small could not be run"):
        trainings.described(training, folder)
