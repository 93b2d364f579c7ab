from __future__ import annotations

import importlib
import json
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from harness.documented_run.recipe import BUILT_IN, MINILM, RECIPES, Recipe, load_recipe, with_options
from harness.errors import CannotTry


def test_defaults_are_the_documents() -> None:
    recipe = Recipe()
    assert (recipe.dataset, recipe.checkpoint) == ("glue/mrpc", "bert-base-uncased")
    assert (recipe.batch_size, recipe.lr, recipe.epochs, recipe.num_labels) == (8, 5e-5, 3, 2)
    assert (recipe.schedule, recipe.warmup_updates, recipe.shuffle) == ("linear", 0, True)


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=list(RECIPES))
def test_named_recipes_differ_in_sources_only(recipe: Recipe) -> None:
    sources = {"name", "dataset", "data", "checkpoint", "pretrained", "vocabulary"}
    if recipe.name == "sst2":  # the exercise, whose rows have one sentence
        sources |= {"text_columns", "label_names"}
    if recipe.name in ("tiny-three", "tiny-topics"):  # of other tasks
        sources |= {"text_columns", "label_names", "num_labels", "metrics"}
    assert {field.name for field in fields(Recipe) if getattr(recipe, field.name) != getattr(Recipe(), field.name)} <= (
        sources
    )


def test_documented_recipes_are_kept_as_ever() -> None:
    """Schema 1 is older than the metrics' names, and records of before have none."""
    old = json.loads((Path(__file__).parent / "run_of_schema_1.json").read_text())["recipe"]
    assert json.loads(json.dumps(Recipe(**old).as_dict())) == old
    three = RECIPES["tiny-three"]
    assert three.as_dict()["metrics"] == three.metrics
    assert Recipe(**three.as_dict()) == three


def test_a_known_checkpoint_brings_its_vocabulary() -> None:
    mine = Recipe(name="mine", checkpoint=BUILT_IN)
    assert (mine.pretrained, mine.vocabulary) == (BUILT_IN, BUILT_IN)
    assert Recipe(checkpoint=MINILM).vocabulary == Recipe().vocabulary
    assert Recipe(checkpoint=BUILT_IN, vocabulary="my own").vocabulary == "my own"


def test_one_metric_needs_no_tuple() -> None:
    assert Recipe(metrics="accuracy").metrics == ("accuracy",)  # type: ignore[arg-type]
    assert Recipe(metrics=Path("mine/cost.py")).metrics == ("mine/cost.py",)  # type: ignore[arg-type]


def test_with_changes_a_copy() -> None:
    recipe = Recipe()
    assert recipe.with_(lr=3e-5).lr == 3e-5
    assert recipe.lr == 5e-5


def test_with_refuses_an_unknown_name() -> None:
    with pytest.raises(TypeError, match="learning_rate"):
        Recipe().with_(learning_rate=1e-3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"batch_size": 0}, "batch_size must be a whole number from 1 to inf, found 0"),
        ({"epochs": 1.5}, "epochs must be a whole number"),
        ({"lr": 0.0}, "lr must be a finite number above 0"),
        ({"lr": float("nan")}, "lr must be a finite number above 0"),
        ({"warmup_updates": -1}, "warmup_updates must be a whole number from 0"),
        ({"seed": -1}, "seed must be a whole number from 0 to 4294967295"),
        ({"loop": "magic"}, "loop must be one of plain"),
        ({"num_labels": 3}, "num_labels is 3, but there are 2 label_names"),
        ({"num_labels": 0}, "num_labels must be a whole number from 2"),
        ({"num_labels": 1, "label_names": ("score",)}, r"num_labels must be 2 or more, found 1: regression .* harness"),
        ({"label_names": ("a", "b", "c")}, r"num_labels is 2, but there are 3 label_names \(a, b, c\); give both"),
        ({"label_names": ("a", "a")}, r"label_names has a name twice \(a, a\)"),
        ({"metrics": ()}, r"metrics must name one or more metrics, each only once, found \(\)"),
        ({"metrics": ("f1", "f1")}, "metrics must name one or more metrics, each only once"),
        ({"metrics": ("recall",)}, "metrics must be of accuracy, f1, .* found 'recall'"),
        ({"metrics": ("a/cost.py", "b/cost.py")}, "metrics has two files with the same name"),
        (
            {"num_labels": 3, "label_names": "abc"},
            "f1 is for label 1 of two labels, but there are 3 labels; name f1_macro",
        ),
        ({"schedule": "linaer"}, "schedule must be one of linear, cosine"),
        ({"seed": 1.5}, "seed must be a whole number"),
        ({"text_columns": ("a", "b", "c")}, "text_columns must name one or two columns"),
    ],
)
def test_impossible_values_are_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Recipe().with_(**change)


def test_recipe_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("from harness.documented_run.recipe import Recipe\nlow = Recipe(name='low', lr=1e-5)\nother = 3\n")
    assert load_recipe(f"{file}:low").lr == 1e-5
    with pytest.raises(CannotTry, match=r"has no recipe 'other'.*recipes in that file: low"):
        load_recipe(f"{file}:other")
    with pytest.raises(CannotTry, match="has no recipe 'missing'"):
        load_recipe(f"{file}:missing")


def test_lists_are_as_good_as_tuples() -> None:
    recipe = Recipe(label_names=["not_equivalent", "equivalent"], text_columns=["sentence1", "sentence2"])  # type: ignore[arg-type]
    assert recipe == Recipe()
    assert hash(recipe) == hash(Recipe())


def test_recipe_file_with_a_dataclass_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "from __future__ import annotations\nfrom dataclasses import dataclass\n"
        "from harness.documented_run.recipe import Recipe\n"
        "@dataclass\nclass Mine(Recipe):\n    pass\n"
        "low = Recipe(lr=1e-5)\n".replace("(Recipe)", "")
    )
    assert load_recipe(f"{file}:low").lr == 1e-5


def test_recipe_file_that_fails(tmp_path: Path) -> None:
    file = tmp_path / "broken.py"
    file.write_text("import nowhere_to_be_found\n")
    with pytest.raises(CannotTry, match="could not be run: ModuleNotFoundError"):
        load_recipe(f"{file}:low")


def test_recipe_file_that_exits(tmp_path: Path) -> None:
    file = tmp_path / "script.py"
    file.write_text("import sys\nsys.exit(0)\n")
    with pytest.raises(CannotTry, match="could not be run: SystemExit"):
        load_recipe(f"{file}:low")


def test_paths_are_as_good_as_strings() -> None:
    assert Recipe(data=Path("a"), checkpoint=Path("b")) == Recipe(data="a", checkpoint="b")  # type: ignore[arg-type]


@pytest.mark.parametrize("spec", ["large", "missing.py", "recipe.txt:x", ""])
def test_unknown_recipe(spec: str) -> None:
    with pytest.raises(CannotTry, match=r"unknown recipe .* expected one of tiny, minilm, bert-base"):
        load_recipe(spec)


def test_a_file_without_the_name_of_a_recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.py").touch()
    with pytest.raises(CannotTry, match=r"mine\.py is a file of recipes: name one, as mine\.py:NAME"):
        load_recipe("mine.py")


def test_missing_recipe_file() -> None:
    with pytest.raises(CannotTry, match=r"recipe file nowhere\.py not found"):
        load_recipe("nowhere.py:x")


def test_options_that_are_given_are_put_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HARNESS_DATA", raising=False)
    assert with_options(Recipe(), data=None, checkpoint=None, loop=None) == Recipe()
    assert with_options(Recipe(), data="a", seed=0) == Recipe(data="a", seed=0)
    with pytest.raises(CannotTry, match="recipe bert-base: loop must be one of plain"):
        with_options(Recipe(), loop="magic")


def test_the_environment_gives_data_to_recipes_that_have_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARNESS_DATA", "mrpc")
    assert with_options(Recipe()).data == "mrpc"
    assert with_options(Recipe(), data="other").data == "other"
    assert with_options(RECIPES["tiny"]) == RECIPES["tiny"]
    monkeypatch.setenv("HARNESS_DATA", "")
    assert with_options(Recipe()).data is None


def test_accelerate_takes_the_processes_that_were_launched() -> None:
    assert with_options(Recipe(), loop="accelerate", launched=2).processes == 2
    assert with_options(Recipe(), loop="accelerate", launched=2, processes=4).processes == 4
    assert with_options(Recipe(loop="accelerate", processes=3), launched=2).processes == 3
    assert with_options(Recipe(), launched=2).processes == 1


@pytest.mark.parametrize(
    "module", ["harness", "harness.pytest_plugin", "harness.documented_run.claims", "harness.findings", "harness.cli"]
)
def test_import_is_light(module: str) -> None:
    heavy = {"torch", "transformers", "datasets", "numpy", "pydantic"}
    code = f"import sys, {module}; print(*({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "\n"


def test_the_old_place_of_recipes_works_with_a_warning() -> None:
    sys.modules.pop("harness.recipe", None)
    with pytest.warns(DeprecationWarning, match=r"harness\.recipe is harness\.documented_run\.recipe now"):
        old = importlib.import_module("harness.recipe")
    assert old.Recipe is Recipe
    assert old.load_recipe is load_recipe
