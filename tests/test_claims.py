"""No claim without a check, no check without a claim or an invariant."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import fields, replace
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.documented_run import claims
from harness.documented_run.claims import Claim, Invariant
from harness.documented_run.recipe import RECIPES, Recipe
from harness.documented_run.stages import CHECKS, CLAIMS, INVARIANTS, STAGES, Run, checks_of_claims, columns, trainer
from harness.findings import StageCheck
from harness.report.terminal import claims_lines

STAGE_FILES = sorted(Path(columns.__file__).parent.glob("*.py"))


def test_each_has_a_check() -> None:
    checks = {one.id: checks for one, _, checks in checks_of_claims()}
    assert list(checks) == [*CLAIMS, *INVARIANTS]
    assert all(checks.values())


def test_the_table_has_each_of_them_in_order() -> None:
    assert [*claims._TABLE["claims"]] == [*CLAIMS]


def test_none_is_left_without_a_check() -> None:
    """One that is written down and given to no decorator would be forgotten."""
    modules = [claims, *(import_module(f"harness.documented_run.stages.{stage.name}") for stage in STAGES)]
    written = [one for module in modules for one in vars(module).values() if isinstance(one, Claim | Invariant)]
    assert all((CLAIMS | INVARIANTS)[one.id] is one for one in written)


def test_ids_and_sentences_mean_one_thing() -> None:
    """Also where several stages' checks stand for one invariant."""
    stand_for = [one for stage in STAGES for one in stage.stands_for.values()]
    assert all((CLAIMS | INVARIANTS)[one.id] is one for one in stand_for)


@pytest.mark.parametrize("check", CHECKS.values(), ids=list(CHECKS))
def test_check_stands_for_something(check: StageCheck[Run]) -> None:
    assert check.claim in CLAIMS or check.claim in INVARIANTS
    assert check.fallback_invariant is None or (check.claim in CLAIMS and check.fallback_invariant in INVARIANTS)
    assert check.statement.endswith(".")


def test_ids_are_used_once() -> None:
    ids = [check.id for stage in STAGES for check in (stage.completes, *stage.checks)]
    assert len(ids) == len(set(ids))
    assert not set(CLAIMS) & set(INVARIANTS)
    claims_of_stages = [one.id for stage in STAGES for one in stage.stands_for.values() if isinstance(one, Claim)]
    assert len(claims_of_stages) == len(set(claims_of_stages))


@pytest.mark.parametrize("claim", CLAIMS.values(), ids=list(CLAIMS))
def test_claim_is_complete(claim: Claim) -> None:
    assert claim.sentence
    assert claim.documents
    assert claim.section
    assert set(claim.documents) <= {"000", "001", "002", "003", "004"}
    assert set(claim.only) <= {field.name for field in fields(Recipe)}
    documented = [Recipe(), Recipe(loop="accelerate", lr=3e-5), Recipe(loop="trainer")]
    assert None in map(claim.not_applicable, documented), "a claim of the documents applies to a documented recipe"


def test_expected_is_there_only_where_a_check_reads_it() -> None:
    """Each claim with an expected value has a name, and the file with its check mentions NAME.expected."""
    with_value = {name for name, one in CLAIMS.items() if one.expected is not None}
    read: set[str] = set()
    for file in STAGE_FILES:
        tree = ast.parse(file.read_text())
        checks = [each for each in ast.walk(tree) if isinstance(each, ast.FunctionDef) and each.decorator_list]
        names = {str(argument) for check in checks for argument in _claims_of(check)}
        module = vars(import_module(f"harness.documented_run.stages.{file.stem}")) if names else {}
        mentioned = {
            each.value.id
            for each in ast.walk(tree)
            if isinstance(each, ast.Attribute) and each.attr == "expected" and isinstance(each.value, ast.Name)
        }
        read |= {module[name].id for name in names & mentioned}
    assert with_value == read


def _claims_of(check: ast.FunctionDef) -> Iterator[str]:
    """The names given to @STAGE.check."""
    for each in check.decorator_list:
        if isinstance(each, ast.Call) and isinstance(each.args[0] if each.args else None, ast.Name):
            yield each.args[0].id  # type: ignore[attr-defined]


def test_another_expected_value_makes_the_check_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    """The two values that a check repeated once."""
    run: Any = SimpleNamespace(model_datasets={"train": SimpleNamespace(column_names=["labels"])})
    assert list(columns.label_renamed.function(run)) == []
    monkeypatch.setattr(columns, "LABEL_RENAMED", replace(columns.LABEL_RENAMED, expected="label"))
    assert "a column label" in [found.expected for found in columns.label_renamed.function(run)]

    collator = type("DataCollatorWithPadding", (), {})()
    run = SimpleNamespace(first_trainer=SimpleNamespace(data_collator=collator))
    assert list(trainer.pads_dynamically_by_itself.function(run)) == []
    monkeypatch.setattr(trainer, "TRAINER_COLLATOR", replace(trainer.TRAINER_COLLATOR, expected="default"))
    assert [found.expected for found in trainer.pads_dynamically_by_itself.function(run)] == ["default"]


def test_vocabulary_claims_are_never_passed_on_tiny() -> None:
    reason = CLAIMS["documented-pair-ids"].not_applicable(RECIPES["tiny"])
    assert reason == "about vocabulary bert-base-uncased; this recipe has built-in"
    assert CLAIMS["documented-pair-ids"].not_applicable(RECIPES["minilm"]) is None


@pytest.mark.parametrize(
    ("changes", "claims"),
    [
        ({"lr": 2e-5}, {"lr", "ball-park"}),
        ({"label_names": ("no", "yes")}, {"label-names"}),
        ({"text_columns": ("sentence",)}, {"raw-columns", "pair-encoding"}),
        ({"metrics": ("accuracy",)}, {"metric-values", "ball-park"}),
        (
            {"num_labels": 3, "label_names": ("a", "b", "c"), "metrics": ("accuracy",)},
            {"num-labels", "first-loss", "logits-shape", "label-names", "metric-values", "ball-park"},
        ),
        ({"batch_size": 16}, {"batch-shapes", "logits-shape", "batches-per-epoch", "progress-bar", "ball-park"}),
        ({"epochs": 1}, {"num-training-steps", "one-update-a-batch", "progress-bar", "ball-park"}),
        ({"schedule": "cosine"}, {"linear-decay", "decay-to-zero", "ball-park"}),
        ({"warmup_updates": 10}, {"no-warmup", "ball-park"}),
        ({"shuffle": False}, {"train-shuffled"}),
        ({"dataset": "mine"}, {"split-sizes", "first-training-row", "num-training-steps", "ball-park"}),
        ({"pretrained": "mine"}, {"ball-park"}),
        ({"vocabulary": "mine"}, {"documented-pair-ids", "first-eight-lengths", "first-eight-batch"}),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_what_a_recipe_changes_is_not_claimed_of_it(changes: dict[str, object], claims: set[str]) -> None:
    recipe = Recipe().with_(**changes)
    assert claims <= {claim.id for claim in CLAIMS.values() if claim.not_applicable(recipe)}


def test_local_copies_are_what_they_are_copies_of() -> None:
    """Where data and weights are read from changes no claim."""
    here, copied = Recipe(), Recipe(data="a/folder", checkpoint="another/folder")
    assert [claim.not_applicable(copied) for claim in CLAIMS.values()] == [
        claim.not_applicable(here) for claim in CLAIMS.values()
    ]


def test_documented_figures_agree_with_each_other() -> None:
    for corpus, rows in CLAIMS["split-sizes"].expected.items():
        batches = CLAIMS["batches-per-epoch"].expected[corpus]
        assert batches == -(-rows["train"] // Recipe().batch_size)
        assert CLAIMS["num-training-steps"].expected[corpus] == Recipe().epochs * batches
    lengths = CLAIMS["first-eight-lengths"].expected
    assert CLAIMS["first-eight-batch"].expected["input_ids"] == [len(lengths), max(lengths)]
    pair = CLAIMS["documented-pair-ids"].expected
    assert len(pair) == len(CLAIMS["documented-pair-tokens"].expected)
    assert len(pair) == len(CLAIMS["documented-pair-token-type-ids"].expected)


def test_table_has_a_row_for_each() -> None:
    lines = list(claims_lines(checks_of_claims()))
    assert lines[0].split() == ["ID", "STAGE", "KIND", "DOCUMENTS", "EXPECTED", "CHECKS", "SAYS"]
    assert next(line for line in lines if line.startswith("zero-grad")).split()[1:3] == ["train", "exact"]
    assert [line.split()[0] for line in lines[1:]] == [*CLAIMS, *INVARIANTS]
    assert "schedule::documented-number-of-updates" in next(line for line in lines if line.startswith("num-training"))
