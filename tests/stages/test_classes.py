"""Recipes of more than two classes, or of one sentence, on generated data: all stages, in every loop."""

from __future__ import annotations

from pathlib import Path

import pytest
from datasets import Value, load_from_disk

from harness.documented_run.metrics import scores_of
from harness.documented_run.recipe import LOOPS, RECIPES, Recipe
from harness.documented_run.run import run_recipe
from harness.documented_run.stages import STAGES
from harness.errors import CannotTry
from scripts import corpus
from tests.test_metrics import COST

ROWS = {"train": 72, "validation": 24, "test": 12}
"""Nine batches an epoch, and rows of eight classes in each split."""


@pytest.fixture(scope="module", params=["tiny-three", "tiny-topics"])
def classes(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Recipe:
    """A small corpus of the recipe's classes, and a module of one's own beside the metrics that it names."""
    recipe, folder = RECIPES[request.param], tmp_path_factory.mktemp(request.param)
    corpus.raw_datasets(seed=7, split_rows=ROWS, dataset=recipe.dataset).save_to_disk(str(folder / "data"))
    (folder / "cost.py").write_text(COST)
    metrics = (*recipe.metrics, folder / "cost.py")
    return recipe.with_(name="small-classes", data=folder / "data", epochs=2, metrics=metrics)


@pytest.mark.parametrize("loop", ["plain", *(pytest.param(each, marks=pytest.mark.nightly) for each in LOOPS[1:])])
def test_every_stage_in_every_loop(classes: Recipe, loop: str) -> None:
    record = run_recipe(classes.with_(loop=loop))
    assert [finding for finding in record.findings if finding.severity == "error"] == []
    assert record.updates == record.updates_planned == 18
    assert set(record.seconds) == {stage.name for stage in STAGES}
    assert list(record.metrics) == [*scores_of(classes)]
    assert list(record.metrics) == [*classes.metrics[:-1], "cost"]
    assert [list(epoch) for epoch in record.epochs] == [list(record.metrics)] * 2
    for check in ("model::num-labels", "model::logits-shape", "evaluate::metric-is-right"):
        assert (record.check(check).claim, record.check(check).outcome) == ("recipe-respected", "holds")
    assert set(record.inputs) == {"data", "checkpoint", "cost.py"}


def test_labels_that_the_recipe_does_not_have(classes: Recipe) -> None:
    known = classes.label_names
    more = classes.with_(num_labels=classes.num_labels + 1, label_names=(*known, "mixed"))
    with pytest.raises(CannotTry, match=r"calls its labels .*; set the recipe's label_names and num_labels"):
        run_recipe(more, until="load")


def test_a_label_out_of_range(classes: Recipe, tmp_path: Path) -> None:
    rows = load_from_disk(classes.data).cast_column("label", Value("int64"))
    rows["train"] = rows["train"].map(lambda row, number: {"label": 99} if number == 5 else {}, with_indices=True)
    rows.save_to_disk(str(tmp_path))
    with pytest.raises(
        CannotTry, match=f"row 5 of the train split has the label 99; .* {classes.num_labels} labels, 0, 1"
    ):
        run_recipe(classes.with_(data=tmp_path), until="load")


def test_labels_that_are_floats(classes: Recipe, tmp_path: Path) -> None:
    load_from_disk(classes.data).cast_column("label", Value("float32")).save_to_disk(str(tmp_path))
    with pytest.raises(CannotTry, match=r"labels that are floats; regression .* harness check SCRIPT\.py"):
        run_recipe(classes.with_(data=tmp_path), until="load")
