"""No claim without a check, no check without a claim or an invariant."""

from __future__ import annotations

import pytest

from harness.claims import CLAIMS, INVARIANTS
from harness.recipe import RECIPES, Recipe
from harness.report.terminal import claims_lines
from harness.stages import CHECKS, STAGES, checks_of_claims


@pytest.mark.parametrize("name", [*CLAIMS, *INVARIANTS])
def test_has_a_check(name: str) -> None:
    assert checks_of_claims()[name], f"write a check that stands for {name}, in harness/stages"


@pytest.mark.parametrize("check", CHECKS.values(), ids=list(CHECKS))
def test_check_stands_for_something(check) -> None:
    assert check.claim in CLAIMS or check.claim in INVARIANTS
    assert check.otherwise is None or (check.claim in CLAIMS and check.otherwise in INVARIANTS)
    assert check.statement.endswith(".")
    if check.claim in CLAIMS:
        assert CLAIMS[check.claim].stage == check.id.partition("::")[0]


def test_ids_are_used_once() -> None:
    ids = [check.id for stage in STAGES for check in (stage.completes, *stage.checks)]
    assert len(ids) == len(set(ids))
    assert not set(CLAIMS) & set(INVARIANTS)


@pytest.mark.parametrize("claim", CLAIMS.values(), ids=list(CLAIMS))
def test_claim_is_complete(claim) -> None:
    assert claim.stage in [stage.name for stage in STAGES]
    assert claim.says
    assert claim.expected is not None
    assert claim.section
    assert set(claim.documents) <= {"000", "001", "002", "003", "004"}
    assert set(claim.only) <= set(Recipe().as_dict())
    documented = [Recipe(), Recipe(loop="accelerate", lr=3e-5), Recipe(loop="trainer")]
    assert None in map(claim.not_applicable, documented), "a claim of the documents applies to a documented recipe"


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
    assert [line.split()[0] for line in lines[1:]] == [*CLAIMS, *INVARIANTS]
    assert "schedule::documented-number-of-updates" in next(line for line in lines if line.startswith("num-training"))
