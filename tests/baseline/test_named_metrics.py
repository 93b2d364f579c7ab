"""Baselines of recipes that name other metrics than the documents'."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from harness.cli import main
from harness.documented_run.baseline import review, stored
from harness.documented_run.baseline.compare import by_chance, compare, documented
from harness.documented_run.baseline.stored import Baseline
from harness.documented_run.recipe import RECIPES, Recipe
from harness.documented_run.record import RunRecord, Verdict
from harness.errors import CannotTry
from harness.report.baseline import baseline_lines
from scripts import corpus
from scripts.same_results import same_results
from tests.baseline.conftest import make_record
from tests.test_metrics import COST

NAME = "three-plain-cpu"
INPUTS = {"data": "d" * 64, "checkpoint": "c" * 64}
SCORES = {"accuracy": 0.95, "f1_macro": 0.94, "matthews_correlation": 0.92, "cost": 30.0}


def three(seed: int = 42, *, metrics: tuple[str, ...] = (), **changes: Any) -> RunRecord:
    """A run of three classes, the scores of which differ a little from seed to seed."""
    named = metrics or (*RECIPES["tiny-three"].metrics, "mine/cost.py")
    recipe = RECIPES["tiny-three"].with_(name="three", seed=seed, metrics=named).as_dict()
    scores = {name: score - (seed % 5) * 0.002 for name, score in SCORES.items()} | changes.pop("scores", {})
    inputs = INPUTS | {"cost.py": "a" * 64}
    return make_record(seed, **{"recipe": recipe, "metrics": scores, "inputs": inputs} | changes)


@pytest.fixture
def baseline(tmp_path: Path) -> Baseline:
    for seed in range(42, 52):
        stored.add(tmp_path, three(seed))
    review.accept(tmp_path, NAME, "the first one")
    return Baseline.read(tmp_path / f"{NAME}.json")


def quality(baseline: Baseline, **scores: float) -> Verdict:
    return compare(baseline, [three(60, scores=scores)])[1]


def test_every_metric_is_compared(baseline: Baseline) -> None:
    found = quality(baseline)
    assert found.outcome == "holds"
    assert [ground.split()[0] for ground in found.grounds] == list(SCORES)


@pytest.mark.parametrize(
    ("name", "score", "says"),
    [("f1_macro", 0.9, "drop"), ("matthews_correlation", -0.5, "drop"), ("cost", 31.0, "gain"), ("cost", 29.0, "drop")],
)
def test_each_can_fail(baseline: Baseline, name: str, score: float, says: str) -> None:
    found = quality(baseline, **{name: score})
    assert found.outcome == "fails"
    assert [finding.where for finding in found.findings] == [f"{NAME}.json, {name}"]
    assert says in found.findings[0].hint


def test_the_metrics_of_a_recorded_seed(baseline: Baseline) -> None:
    exact = compare(baseline, [three(scores={"f1_macro": 0.9361})])[0]
    assert [finding.where for finding in exact.findings] == [f"{NAME}.json, seed 42, f1_macro"]


def test_what_can_be_lost(baseline: Baseline) -> None:
    """Three classes are guessed right once in three; of a module of one's own nobody knows."""
    chances = [by_chance(baseline, name) for name in baseline.metrics]
    assert chances == [1 / 3, 0.0, 0.0, float("-inf")]
    lines = list(baseline_lines(baseline))
    assert lines[1].split() == ["seed", *SCORES, "loss", "commit", "started"]
    assert [line.partition(":")[0] for line in lines[-4:]] == list(SCORES)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"scores": {"matthews_correlation": -1.5}}, r"matthews_correlation is -1\.5; expected -1 to 1"),
        ({"scores": {"f1_macro": 1.5}}, r"f1_macro is 1\.5; expected 0 to 1"),
        (
            {"metrics": ("accuracy",)},
            r"recipe\.metrics is \['accuracy', 'f1_macro', .*, 'cost\.py'\] in the baseline and \['acc",
        ),
        ({"inputs": INPUTS | {"cost.py": "b" * 64}}, r"inputs\.cost\.py is 'aaaa.*bbbb"),
        ({"scores": {"price": 3.0}}, "it has the metrics accuracy, .*, cost, but seed 42 has .*, cost, price"),
    ],
)
def test_what_cannot_be_compared(baseline: Baseline, changes: dict[str, Any], message: str) -> None:
    if changes.get("metrics"):
        changes |= {"inputs": INPUTS}
    with pytest.raises(CannotTry, match=message):
        compare(baseline, [three(**changes)])


def test_a_named_metric_that_is_not_there() -> None:
    record = three()
    del record.metrics["f1_macro"]
    with pytest.raises(CannotTry, match="has the metrics accuracy, matthews_correlation, cost; expected accur"):
        stored.seed_run(record)


def test_a_module_may_lie_elsewhere(baseline: Baseline) -> None:
    metrics = (*RECIPES["tiny-three"].metrics, "/somewhere/else/cost.py")
    assert compare(baseline, [three(metrics=metrics)])[0].outcome == "holds"


def test_documented_metrics_are_kept_as_ever(folder: Path, baseline: Baseline, tmp_path: Path) -> None:
    path = folder / "tiny-plain-cpu.json"
    content = json.loads(path.read_text())
    assert [*content["runs"][0]][:4] == ["seed", "accuracy", "f1", "loss"]
    assert Baseline.read(path).metrics == ("accuracy", "f1")
    del content["runs"][0]["f1"]
    path.write_text(json.dumps(content))
    with pytest.raises(CannotTry, match="the runs have different metrics"):
        Baseline.read(path)
    kept = json.loads((tmp_path / f"{NAME}.json").read_text())["runs"][0]
    assert [*kept][:3] == ["seed", "metrics", "loss"]
    assert [*kept["metrics"]] == list(SCORES) == list(baseline.metrics)


def test_the_documents_say_nothing_of_other_metrics(baseline: Baseline) -> None:
    record = make_record(recipe=Recipe(metrics=("accuracy", "f1_macro")).as_dict())
    assert documented([record]).outcome == "not applicable"
    other = baseline.model_copy(deep=True)
    other.recipe["loop"] = "trainer"
    for each in (baseline, other):
        for run in each.runs:
            run.metrics = {"cost": 1.0}
    with pytest.raises(CannotTry, match="is that of the documents' accuracy and f1; the recipe measures cost"):
        same_results([baseline, other])


@pytest.mark.slow
def test_on_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Recorded, accepted, run and compared, with a module of one's own named as seen from the folder."""
    monkeypatch.chdir(tmp_path)
    rows = {"train": 48, "validation": 24, "test": 12}
    recipe = RECIPES["tiny-three"]
    corpus.raw_datasets(seed=7, split_rows=rows, dataset=recipe.dataset).save_to_disk("data")
    Path("cost.py").write_text(COST)
    mine = recipe.with_(name="mine", data="data", epochs=1, metrics=("f1_macro", "cost.py"))
    Path("mine.py").write_text(f"from harness.documented_run.recipe import Recipe\nthree = {mine!r}\n")
    for arguments, status, says in (
        ("baseline record --recipe mine.py:three --seeds 3", 0, "accept it"),
        ("baseline accept mine-plain-cpu --reason first", 0, ""),
        ("baseline show mine-plain-cpu", 0, "f1_macro  cost"),
        ("run --recipe mine.py:three --output run", 0, "\nsame seed   holds\n"),
        ("baseline compare run", 0, "same seed   holds\n"),
    ):
        done = CliRunner().invoke(main, arguments.split())
        assert done.exit_code == status, done.output
        assert says in done.output
    Path("cost.py").write_text(COST.replace("* (2 if", "* (3 if"))
    other = CliRunner().invoke(main, ["run", "--recipe", "mine.py:three", "--output", "other"])
    assert "not compared with the baseline: baseline mine-plain-cpu: inputs.cost.py is" in other.output
