"""docs/recipes.md has every field of a recipe, every layout of data, and an example that loads."""

from __future__ import annotations

import re
from dataclasses import MISSING, fields
from pathlib import Path

import pytest

from harness.documented_run.recipe import METRICS, SCHEDULES, Recipe, load_recipe
from harness.documented_run.sources import load_raw_datasets, local

PAGE = (Path(__file__).parent.parent / "docs" / "recipes.md").read_text(encoding="utf-8")


def block(language: str) -> str:
    (found,) = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    return str(found)


def test_every_field_has_its_row_and_its_default() -> None:
    rows = re.findall(r"^\| `(\w+)` \| `(.+?)` \| (.+) \|$", PAGE, re.MULTILINE)
    assert MISSING not in {field.default for field in fields(Recipe)}
    assert [(name, default) for name, default, _ in rows] == [
        (field.name, repr(field.default)) for field in fields(Recipe)
    ]
    said = {name: says for name, _, says in rows}
    assert all(f"`{schedule}`" in said["schedule"] for schedule in SCHEDULES)
    assert all(f"`{name}`" in (Path(__file__).parent.parent / "docs" / "runs.md").read_text() for name in METRICS)


def test_every_layout_is_named() -> None:
    files = [*local.TSV_FILES.values(), local.ORIGINAL_TRAIN, local.ORIGINAL_TEST, local.DEV_IDS]
    columns = [name for header in (*local.GLUE_HEADERS, *local.SENTENCE_HEADERS) for name in header]
    for name in (*files, *columns, *local.SPLITS, *(f".{suffix}" for suffix in local.READERS)):
        assert f"`{name}`" in PAGE, name


def test_the_example_loads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(block("python"))
    Path("reviews").mkdir()
    for split in local.SPLITS:
        (Path("reviews") / f"{split}.csv").write_text(block("csv"))
    assert load_recipe("mine.py:gentle").lr == 2e-5
    rows = load_raw_datasets(load_recipe("mine.py:reviews"))["train"]
    assert rows[0] == {"title": "Fine", "text": "It works, and it is quiet.", "stars": 2, "idx": 0}
