"""The documented run on a GPU, bert-base-uncased and MiniLM on MRPC with all 1377 updates; elsewhere a small one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.documented_run.baseline import review, stored
from harness.documented_run.baseline.compare import baseline_of
from harness.documented_run.recipe import RECIPES, Recipe
from harness.documented_run.record import RunRecord
from harness.documented_run.sources import find_checkpoint, load_raw_datasets
from harness.errors import CannotTry
from harness.pytest_plugin import baselines_folder, with_options
from tests.gpu.test_loops import run_once


@pytest.fixture(
    params=[
        pytest.param("small", marks=pytest.mark.slow),
        pytest.param("minilm", marks=pytest.mark.gpu),
        pytest.param("bert-base", marks=pytest.mark.gpu),
    ]
)
def documented(
    request: pytest.FixtureRequest, small: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Recipe:
    """The recipe; with the small one goes a baseline of its own."""
    from harness.documented_run.run import run_recipe

    if request.param == "small":
        for seed in (43, 44):
            path = stored.add(tmp_path, run_recipe(small.with_(seed=seed)))
        review.accept(tmp_path, path.stem, "a test")
        monkeypatch.setattr(request.config.option, "harness_baselines", str(tmp_path))
        monkeypatch.setattr(request.config.option, "harness_update", False)
        return small
    recipe = with_options(RECIPES[request.param], request.config)
    if request.param == "minilm":  # whatever --harness-checkpoint is
        recipe = recipe.with_(checkpoint=RECIPES["minilm"].checkpoint)
    try:
        find_checkpoint(recipe, weights=True)
        load_raw_datasets(recipe)
    except CannotTry as reason:
        pytest.skip(f"accuracy needs pretrained weights and MRPC: {reason}")
    return recipe


def test_the_documented_run(
    benchmark: Any, documented: Recipe, baseline: Callable[[RunRecord], None], request: pytest.FixtureRequest
) -> None:
    """Every check holds, the documents' ball park among them, and it is as good as the recorded runs."""
    record = run_once(benchmark, documented)
    benchmark.extra_info.update({**record.metrics, **record.seconds})
    assert not record.checks_failed, record.findings
    assert record.updates == record.updates_planned
    path = baseline_of(baselines_folder(request.config), record)
    if path.exists() or request.config.getoption("harness_update"):
        baseline(record)
    else:
        request.node.warn(pytest.PytestWarning(f"not compared: no baseline {path}"))
    assert record.comparison or documented.name != "small", "the small one has a baseline"
