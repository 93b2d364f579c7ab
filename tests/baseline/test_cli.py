"""harness baseline, as a user calls it, and the comparison at the end of harness run."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from harness.cli import main
from harness.documented_run.baseline import stored
from harness.documented_run.baseline.review import acceptable, stale
from harness.documented_run.baseline.stored import Baseline
from harness.documented_run.recipe import Recipe
from harness.documented_run.record import RunRecord
from harness.report.baseline import next_lines
from tests.baseline.conftest import make_record


def harness(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def mine(small: Recipe, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recipe file with a recipe of few updates."""
    path = tmp_path_factory.mktemp("mine") / "mine.py"
    path.write_text(f"from harness.documented_run.recipe import Recipe\nsmall = {small.with_(epochs=1)!r}\n")
    return path


@pytest.fixture(scope="module")
def recorded(mine: Path) -> Path:
    """A folder with a baseline of three seeds, which was recorded in two calls."""
    folder = mine.parent / "baselines"
    first = harness("baseline", "record", "--recipe", f"{mine}:small", "--seeds", "2", "--baselines", folder)
    assert first.exit_code == 0, first.output
    assert first.stdout.endswith(
        f'harness baseline accept small-plain-cpu --baselines {shlex.quote(str(folder))} --reason "..."\n'
    )
    again = harness("baseline", "record", "--recipe", f"{mine}:small", "--seeds", "3", "--baselines", folder)
    assert again.output.count("is in the candidate") + again.output.count("added to") == 3
    clean = not Baseline.read(folder / "candidates" / "small-plain-cpu.json").runs[0].dirty
    assert again.output.count("is in the candidate") == (2 if clean else 0), "with changes nothing is taken for done"
    done = harness("baseline", "accept", "small-plain-cpu", "--reason", "the first", "--baselines", folder)
    assert done.exit_code == 0, done.output
    return folder


@pytest.mark.slow
def test_record_and_show(recorded: Path) -> None:
    baseline = Baseline.read(recorded / "small-plain-cpu.json")
    assert [run.seed for run in baseline.runs] == [42, 43, 44]
    assert baseline.reason == "the first"
    assert {len(run.curve) for run in baseline.runs} == {8}
    assert set(baseline.inputs) == {"data", "checkpoint"}
    shown = harness("baseline", "show", "small-plain-cpu", "--baselines", recorded)
    assert shown.exit_code == 0
    assert shown.output.startswith("small-plain-cpu: 3 seeds, the first\n")


@pytest.mark.parametrize(("seed", "exact"), [("42", "holds"), ("60", "not applicable")])
def test_run_is_compared(recorded: Path, mine: Path, tmp_path: Path, seed: str, exact: str) -> None:
    arguments: list[str | Path] = ["run", "--recipe", f"{mine}:small", "--seed", seed, "--output", tmp_path / "run"]
    done = harness(*arguments, "--baselines", recorded)
    assert done.exit_code == 0, done.output
    assert f"\nsame seed   {exact}\n" in done.output
    record = RunRecord.read(tmp_path / "run")
    assert [verdict.comparison for verdict in record.comparison] == ["exact", "quality", "documented"]
    again = harness("baseline", "compare", tmp_path / "run", "--baselines", recorded)
    assert again.exit_code == 0, again.output
    assert f"same seed   {exact}\n" in again.output


@pytest.mark.slow
def test_a_run_of_another_learning_rate_under_the_same_name(recorded: Path, mine: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.py"
    other.write_text(mine.read_text().replace("lr=5e-05", "lr=0.0001"))
    done = harness("run", "--recipe", f"{other}:small", "--output", tmp_path / "run", "--baselines", recorded)
    assert done.exit_code == 0, done.output
    reason = "not compared with the baseline: baseline small-plain-cpu: recipe.lr is 5e-05 in the baseline and 0.0001"
    assert reason in done.output
    compared = harness("baseline", "compare", tmp_path / "run", "--baselines", recorded)
    assert compared.exit_code == 2
    assert "recipe.lr is 5e-05 in the baseline and 0.0001 in the run" in compared.output


def test_without_a_baseline(mine: Path, tmp_path: Path) -> None:
    done = harness("run", "--recipe", f"{mine}:small", "--output", tmp_path / "run", "--baselines", tmp_path / "none")
    assert done.exit_code == 0
    assert f"record one with harness baseline record --recipe {mine}:small\n" in done.output


@pytest.mark.slow
def test_new_seeds_are_trained_for_the_comparison(
    recorded: Path, mine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The recorded ones, 42 to 44, are passed over: they would be no further evidence."""
    monkeypatch.chdir(tmp_path)
    arguments: list[str | Path] = ["baseline", "compare", "--recipe", f"{mine}:small", "--baselines", recorded]
    done = harness(*arguments, "--seeds", "2")
    assert done.exit_code == 0, done.output
    assert [int(path.name.split("-")[2]) for path in sorted(tmp_path.glob("runs/small-plain-*"))] == [45, 46]
    assert "smallest detectable drop with 2 runs" in done.output
    again = harness("baseline", "compare", *sorted(tmp_path.glob("runs/*")), "--baselines", recorded)
    assert done.stdout.endswith(again.stdout)


@pytest.mark.parametrize("arguments", [(), ("--seeds", "2", "run.json")])
def test_runs_or_seeds_to_compare(arguments: tuple[str, ...]) -> None:
    done = harness("baseline", "compare", *arguments)
    assert done.exit_code == 2
    assert "give the runs to compare, or --seeds K" in done.output


def test_no_seed_is_trained_for_a_comparison_that_cannot_be_made(mine: Path, tmp_path: Path, recorded: Path) -> None:
    none = harness("baseline", "compare", "--recipe", f"{mine}:small", "--seeds", "2", "--baselines", tmp_path)
    assert none.exit_code == 2
    assert "small-plain-cpu.json not found; record one" in none.output
    other = tmp_path / "other.py"
    other.write_text(mine.read_text().replace("lr=5e-05", "lr=0.0001"))
    done = harness("baseline", "compare", "--recipe", f"{other}:small", "--seeds", "2", "--baselines", recorded)
    assert done.exit_code == 2
    assert "recipe.lr is 5e-05 in the baseline" in done.output
    assert "seed 45" not in done.output


@pytest.mark.parametrize("command", ["compare", "record"])
@pytest.mark.parametrize("option", ["--recipe", "--loop", "--seed"])
def test_runs_that_are_there_say_what_they_are(command: str, option: str) -> None:
    value = {"--recipe": "minilm", "--loop": "trainer", "--seed": "7"}[option]
    done = harness("baseline", command, "run.json", option, value)
    assert done.exit_code == 2
    assert f"{option} says what to train" in done.output


def test_runs_of_other_machines_are_recorded(tmp_path: Path) -> None:
    (tmp_path / "seed-42").mkdir()
    make_record(42).write(tmp_path / "seed-42" / "run.json")
    make_record(43).write(tmp_path / "43.json")
    there = stored.add(tmp_path / "there", make_record(44))
    done = harness("baseline", "record", tmp_path / "seed-42", tmp_path / "43.json", there, "--baselines", tmp_path)
    assert done.exit_code == 0, done.output
    candidate = tmp_path / "candidates" / "tiny-plain-cpu.json"
    assert done.output.splitlines()[:3] == [
        f"{tmp_path / 'seed-42'}: seed 42, added to {candidate}",
        f"{tmp_path / '43.json'}: seed 43, added to {candidate}",
        f"{there}: seed 44, added to {candidate}",
    ]
    assert done.output.count("harness baseline accept tiny-plain-cpu") == 1
    assert [run.seed for run in Baseline.read(candidate).runs] == [42, 43, 44]


def test_what_cannot_be_recorded_is_named(tmp_path: Path) -> None:
    make_record(42, interrupted=True, updates=3).write(tmp_path / "run.json")
    done = harness("baseline", "record", tmp_path, "--baselines", tmp_path / "b")
    assert done.exit_code == 2
    assert "seed 42 made 3 of 30 updates; only complete runs are recorded" in done.output


@pytest.mark.parametrize("command", [("record",), ("compare", "--seeds", "1")])
def test_what_fails_before_the_first_update_is_not_trained(
    recorded: Path, mine: Path, tmp_path: Path, command: tuple[str, ...]
) -> None:
    """The small corpus called MRPC has not its numbers of rows."""
    fake = tmp_path / "fake.py"
    fake.write_text(mine.read_text().replace("dataset='tests/small'", "dataset='glue/mrpc'"))
    done = harness("baseline", *command, "--recipe", f"{fake}:small", "--baselines", recorded)
    assert done.exit_code == 2
    assert "load::split-sizes failed before the first update; harness run shows more" in done.output


def worse(folder: Path, tmp_path: Path, **changes: Any) -> Path:
    record = make_record(60, **({"metrics": {"accuracy": 0.5, "f1": 0.5}} | changes))
    record.write(tmp_path / "run.json")
    return tmp_path / "run.json"


def test_a_worse_run_exits_with_1(folder: Path, tmp_path: Path) -> None:
    done = harness("baseline", "compare", worse(folder, tmp_path), "--baselines", folder)
    assert done.exit_code == 1
    assert "quality     fails" in done.output
    assert "A drop that the recorded seeds do not explain" in done.output


def test_a_candidate_is_shown_before_it_is_accepted(folder: Path) -> None:
    path = stored.add(folder, make_record(42, metrics={"accuracy": 0.9, "f1": 0.93}))
    done = harness("baseline", "compare", path, "--baselines", folder)
    assert done.exit_code == 1
    assert "tiny-plain-cpu.json, seed 42, accuracy" in done.output


def test_the_first_candidate_can_be_looked_at(folder: Path, tmp_path: Path) -> None:
    new = tmp_path / "new"
    path = stored.add(new, make_record())
    option = ("--baselines", new)
    for arguments in (("show",), ("show", "tiny-plain-cpu")):
        shown = harness("baseline", *arguments, *option)
        assert shown.exit_code == 0, shown.output
        assert shown.output.startswith("tiny-plain-cpu: 1 seed, a candidate\n")
    compared = harness("baseline", "compare", path, *option)
    assert compared.exit_code == 2
    assert "would be the first baseline of its name" in compared.output
    accepted = harness("baseline", "accept", "tiny-plain-cpu", "--reason", "one", *option)
    assert accepted.exit_code == 2
    assert "has 1 seed, expected 2 or more" in accepted.output


def test_a_baseline_and_its_candidate_are_both_shown(folder: Path) -> None:
    stored.add(folder, make_record(60))
    for arguments in ((), ("tiny-plain-cpu",)):
        shown = harness("baseline", "show", *arguments, "--baselines", folder)
        assert shown.exit_code == 0, shown.output
        assert "tiny-plain-cpu: 10 seeds, the first one\n" in shown.output
        assert "tiny-plain-cpu: 1 seed, a candidate\n" in shown.output
    (folder / "candidates" / "tiny-plain-cpu.json").write_text("{")
    broken = harness("baseline", "show", "--baselines", folder)
    assert broken.exit_code == 1
    assert "candidates/tiny-plain-cpu.json: the file: Invalid JSON" in broken.output


def test_what_to_do_with_too_few_seeds_is_said(tmp_path: Path) -> None:
    path = stored.add(tmp_path, make_record())
    few = list(next_lines(path, few=acceptable(tmp_path, path), baselines=None))
    assert few == [
        "look at it   harness baseline show tiny-plain-cpu",
        "not accepted yet: it has 1 seed, expected 2 or more, which have a spread",
        "add seeds    harness baseline record --seeds K, or the seeds of other files: FILE.json",
    ]
    stored.add(tmp_path, make_record(43))
    assert list(next_lines(path, few=acceptable(tmp_path, path), baselines=None))[1:] == [
        'accept it    harness baseline accept tiny-plain-cpu --reason "..."'
    ]


def candidate(folder: Path, **changes: Any) -> Path:
    """A candidate of ten other seeds in the file of tiny, with these keys changed, and those of its ``recipe``."""
    for seed in range(60, 70):
        path = stored.add(folder, make_record(seed))
    content = json.loads(path.read_text())
    content["recipe"] |= changes.pop("recipe", {})
    path.write_text(json.dumps(content | changes))
    return path


def test_a_candidate_of_the_same_thing_is_accepted_and_what_is_new_is_said(folder: Path) -> None:
    candidate(folder, inputs={"data": "e" * 64, "checkpoint": "c" * 64})
    done = harness("baseline", "accept", "tiny-plain-cpu", "--reason", "another corpus", "--baselines", folder)
    assert done.exit_code == 0, done.output
    first, last = done.output.splitlines()
    assert first == f"  inputs.data {'d' * 64} there, {'e' * 64} here"
    assert last == f"accepted as {folder / 'tiny-plain-cpu.json'}"
    assert Baseline.read(folder / "tiny-plain-cpu.json").reason == "another corpus"


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"recipe": {"lr": 9.0, "epochs": 4}}, ["recipe.epochs 3 there, 4 here", "recipe.lr 5e-05 there, 9.0 here"]),
        (
            {"recipe": {"name": "other", "lr": 9.0}},
            [
                "its contents say that its name is other-plain-cpu, and its file name says tiny-plain-cpu",
                "recipe.name tiny there, other",
            ],
        ),
        (
            {"hardware": "1"},
            [
                "its contents say that its name is tiny-plain-1",
                "its hardware is 1, but that of its runs is cpu",
                "hardware cpu there, 1 here",
            ],
        ),
        ({"recipe": {"label_names": [1, 2, 3]}}, ["the recipe is not valid: ", "recipe.label_names ["]),
        ({"recipe": {"surprise": 1}}, ["the recipe is not valid: ", "recipe.surprise None there, 1 here"]),
        ({"recipe": {"dataset": {}}}, ["recipe.dataset built-in/mrpc-shaped there, {} here"]),
    ],
)
@pytest.mark.parametrize("first", [False, True])
def test_a_candidate_of_something_else_is_refused(
    folder: Path, changes: dict[str, Any], says: list[str], first: bool
) -> None:
    """And every key is named; also where there is no baseline yet, as far as the candidate itself tells."""
    baseline = folder / "tiny-plain-cpu.json"
    path = candidate(folder, **changes)
    before = path.read_bytes(), baseline.read_bytes()
    if first:
        baseline.unlink()
    done = harness("baseline", "accept", "tiny-plain-cpu", "--reason", "x", "--baselines", folder)
    assert done.exit_code == 2
    assert path.read_bytes() == before[0]
    if first:
        assert not baseline.exists()
        assert "is not what it would be accepted as" in done.output
    else:
        assert baseline.read_bytes() == before[1]
        assert [each for each in says if each not in done.output] == []


def test_the_shipped_baselines_are_found_where_none_are_recorded(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    monkeypatch.chdir(empty)
    shipped = harness("baseline", "show", "tiny-plain-cpu")
    assert shipped.exit_code == 0, shipped.output
    assert shipped.output.startswith("tiny-plain-cpu: 20 seeds, ")
    own = empty / "baselines"
    own.mkdir()
    (own / "tiny-plain-cpu.json").write_bytes((folder / "tiny-plain-cpu.json").read_bytes())
    assert harness("baseline", "show", "tiny-plain-cpu").output.startswith("tiny-plain-cpu: 10 seeds, the first one")
    everything = harness("baseline", "show").output
    assert "tiny-plain-cpu: 10 seeds" in everything
    assert "minilm-plain-cpu: 5 seeds" in everything
    none = harness("baseline", "show", "minilm-plain-cpu", "--baselines", own)
    assert none.exit_code == 2
    assert "minilm-plain-cpu.json not found" in none.output


def test_broken_baseline_exits_with_2(folder: Path, tmp_path: Path) -> None:
    (folder / "tiny-plain-cpu.json").write_text("{")
    done = harness("baseline", "compare", worse(folder, tmp_path), "--baselines", folder)
    assert done.exit_code == 2
    assert "tiny-plain-cpu.json: the file: Invalid JSON" in done.output
    assert "Traceback" not in done.output


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    done = harness("baseline", "show", "--baselines", tmp_path / "typo")
    assert done.exit_code == 2
    assert "folder of baselines" in done.output


def test_record_under_a_launcher(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    done = harness("baseline", "record", "--baselines", tmp_path)
    assert done.exit_code == 2
    assert "give it --processes instead of a launcher" in done.output


def test_stale_baselines_are_named(folder: Path) -> None:
    assert stale(folder) == {}
    path = folder / "tiny-plain-cpu.json"
    baseline = Baseline.read(path)
    baseline.recipe["lr"] = 1e-4
    baseline.write(path)
    baseline.recipe["name"] = "gone"
    baseline.write(folder / "gone-plain-cpu.json")
    baseline.write(folder / "other.json")
    (folder / "zero.json").write_text("")
    wrong = {path.name: sentence for path, sentence in stale(folder).items()}
    assert wrong.keys() == {"other.json", "tiny-plain-cpu.json", "zero.json"}  # gone is somebody's own
    assert "its contents say that it is gone-plain-cpu" in wrong["other.json"]
    assert (
        "recipe.lr is 0.0001 in the baseline and 5e-05 now, so no run is compared with it"
        in wrong["tiny-plain-cpu.json"]
    )
    assert "zero.json: the file" in wrong["zero.json"]
    assert harness("baseline", "show", "--baselines", folder).exit_code == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("compare", "sfft"), "no training sfft; there are sft, lora"),
        (("compare", "sft", "sfft"), "no training sfft; there are sft, lora"),
        (("record", "sfft"), "no training sfft; there are sft, lora"),
        (("accept", "sfft", "data", "--why", "it is meant"), "no training sfft; there are sft, lora"),
        (("compare", "runs/one"), "run record runs/one"),
        (("compare", "run.json"), "run record run.json"),
    ],
)
def test_a_name_that_is_no_training_is_said(
    words: tuple[str, ...], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = "".join(f'[[tool.harness.training]]\nname = "{name}"\nscript = "{name}.py"\n' for name in ("sft", "lora"))
    (tmp_path / "pyproject.toml").write_text(tables)
    for name in ("sft", "lora"):
        (tmp_path / f"{name}.py").write_text("")
    monkeypatch.chdir(tmp_path)
    done = harness("baseline", *words)
    assert done.exit_code == 2
    assert said in done.output
