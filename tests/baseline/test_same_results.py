"""Loops against each other: what the seeds show, what they do not, and what cannot be compared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from harness.documented_run.baseline import review, stored
from harness.documented_run.baseline.stored import Baseline
from harness.errors import CannotTry
from scripts.same_results import loops_of, main, margin, same_results
from tests.baseline.conftest import make_record


def recorded(folder: Path, loop: str, seeds: range, **metrics: float) -> Baseline:
    """A candidate of a loop; ``metrics`` are added to those of every seed."""
    for seed in seeds:
        record = make_record(seed, recipe={"loop": loop})
        changed = {name: value + metrics.get(name, 0.0) for name, value in record.metrics.items()}
        path = stored.add(folder, make_record(seed, recipe={"loop": loop}, metrics=changed))
    return Baseline.read(path)


def test_the_margin_is_what_the_documents_results_are_apart() -> None:
    assert margin("accuracy") == pytest.approx(0.8578 - 0.8431, abs=1e-4)
    assert margin("f1") == pytest.approx(0.8997 - 0.8908, abs=1e-4)


@pytest.mark.parametrize(
    ("seeds", "shift", "outcome"),
    [
        (20, {}, "equivalent within the margin"),
        (20, {"accuracy": -0.03}, "not shown"),
        (20, {"f1": 0.02}, "not shown"),
        (2, {}, "not shown"),
    ],
)
def test_outcome(tmp_path: Path, seeds: int, shift: dict[str, float], outcome: str) -> None:
    plain = recorded(tmp_path, "plain", range(100, 120))
    trainer = recorded(tmp_path, "trainer", range(200, 200 + seeds), **shift)
    found = same_results([plain, trainer])
    assert found.outcome == outcome
    assert found.seeds == {"plain": 20, "trainer": seeds}
    assert [(pair.metric, pair.loops) for pair in found.pairs] == [
        ("accuracy", ("plain", "trainer")),
        ("f1", ("plain", "trainer")),
    ]


def test_each_loop_is_compared_with_each(tmp_path: Path) -> None:
    begins = {"plain": 1, "accelerate": 11, "trainer": 21}
    loops = [recorded(tmp_path, loop, range(seed, seed + 3)) for loop, seed in begins.items()]
    assert [pair.loops for pair in same_results(loops).pairs[::2]] == [
        ("plain", "accelerate"), ("plain", "trainer"), ("accelerate", "trainer"),
    ]  # fmt: skip


def test_the_same_runs_again_are_no_second_sample(tmp_path: Path) -> None:
    """Accelerate makes the plain loop's bits: its runs of the same seeds say nothing new."""
    plain, accelerate = (recorded(tmp_path, loop, range(42, 45)) for loop in ("plain", "accelerate"))
    with pytest.raises(CannotTry, match=r"has seeds of tiny-plain-cpu, bit for bit \(42, 43, 44\)"):
        same_results([plain, accelerate])


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"recipe": {"loop": "trainer", "lr": 3e-5}}, "recipe.lr is 5e-05 in the baseline and 3e-05 in the run"),
        ({"recipe": {"loop": "trainer"}, "inputs": {"data": "e" * 64, "checkpoint": "c" * 64}}, "inputs.data"),
    ],
)
def test_other_things_are_not_compared(tmp_path: Path, change: dict[str, Any], says: str) -> None:
    plain = recorded(tmp_path, "plain", range(3))
    for seed in range(3):
        path = stored.add(tmp_path, make_record(seed, **change))
    with pytest.raises(CannotTry, match=says):
        same_results([plain, Baseline.read(path)])


def test_one_seed_is_refused(tmp_path: Path) -> None:
    loops = [recorded(tmp_path, "plain", range(2)), recorded(tmp_path, "trainer", range(5, 6))]
    with pytest.raises(CannotTry, match="tiny-trainer-cpu has runs of one seed"):
        same_results(loops)


def test_one_loop_is_refused(tmp_path: Path) -> None:
    plain = recorded(tmp_path, "plain", range(2))
    with pytest.raises(CannotTry, match="give two baselines or more"):
        same_results([plain])
    with pytest.raises(CannotTry, match="give each loop once"):
        same_results([plain, plain])


def test_command(folder: Path) -> None:
    """The baselines of the folder that differ in their loop alone; 1 where nothing is shown."""
    runner = CliRunner()
    asked = ["--baselines", str(folder)]
    alone = runner.invoke(main, asked)
    assert alone.exit_code == 2
    assert "has no recipe with two loops" in alone.output
    recorded(folder, "trainer", range(200, 220))
    review.accept(folder, "tiny-trainer-cpu", "another loop")
    assert [[each.recipe["loop"] for each in group] for group in loops_of(folder)] == [["plain", "trainer"]]
    shown = runner.invoke(main, asked)
    assert shown.output.splitlines()[0] == "tiny on cpu, seeds: plain 10, trainer 20"
    assert shown.output.splitlines()[-1] == "the same results: equivalent within the margin"
    assert shown.exit_code == 0
    candidate = recorded(folder, "trainer", range(200, 202)).name
    files = [str(folder / "tiny-plain-cpu.json"), str(folder / "candidates" / f"{candidate}.json")]
    few = runner.invoke(main, [*files])
    assert (few.exit_code, few.output.splitlines()[-1]) == (1, "the same results: not shown")


def test_command_with_the_shipped_baselines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From a folder without any, as README has it; a folder that is named must be there."""
    monkeypatch.chdir(tmp_path)
    shown = CliRunner().invoke(main, [])
    assert (shown.exit_code, shown.exception and str(shown.exception)) == (0, None)
    assert shown.output.splitlines()[0] == "tiny on cpu, seeds: accelerate 5, plain 20, trainer 5"
    absent = CliRunner().invoke(main, ["--baselines", "nowhere"])
    assert absent.exit_code == 2
    assert "folder of baselines nowhere not found" in absent.output


def test_accelerate_is_compared_with_the_loop_that_has_its_seed(folder: Path) -> None:
    """A baseline of its own with few seeds does not take the plain loop's from it."""
    from harness.documented_run.baseline.compare import baseline_of

    recorded(folder, "accelerate", range(200, 203))
    review.accept(folder, "tiny-accelerate-cpu", "a sample of its own")
    found = {seed: baseline_of(folder, make_record(seed, recipe={"loop": "accelerate"})) for seed in (42, 201, 300)}
    assert {seed: path.stem for seed, path in found.items()} == {
        42: "tiny-plain-cpu",
        201: "tiny-accelerate-cpu",
        300: "tiny-plain-cpu",
    }
