"""Every check can fail, and does not cry wolf: its mutant is caught by it, its clean twin passes it."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
from transformers import set_seed

from harness.findings import CheckResult
from harness.launch import in_processes
from harness.recipe import BUILT_IN, RECIPES, Recipe
from harness.stages import CHECKS, STAGES, Run
from harness.stages.chain import Step, over_all_ranks
from tests.mutants import distributed_and_trainer_mutants  # noqa: F401, registers its mutants
from tests.mutants.mutants import MUTANTS, Mutant

_prefixes: dict[tuple[Recipe, str], Run] = {}
_documented: dict[tuple[str, Recipe], dict[str, CheckResult]] = {}


def prepared(recipe: Recipe, stage: str) -> Run:
    """A run that has done all steps before ``stage``. What the stage's steps never change is done once."""
    # Without weights of BERT's own, the small ones stand in; the recipe is what the checks look at.
    loadable = recipe if recipe.checkpoint != Recipe().checkpoint else recipe.with_(checkpoint=BUILT_IN)
    set_seed(recipe.seed)
    names = [each.name for each in STAGES]
    # The steps from model to train change the model or the optimizer; evaluate's change neither.
    shared = names[: names.index(stage if stage == "evaluate" else min(stage, "model", key=names.index))]
    key = (loadable, shared[-1] if shared else "")
    if key not in _prefixes:
        _prefixes[key] = Run(loadable)
        for each in STAGES[: len(shared)]:
            if each.name != "equivalence":  # it leaves nothing for the others
                each.do(_prefixes[key])
    run = copy.copy(_prefixes[key])
    run.epochs, run.metrics = [], {}
    for name in ("raw_datasets", "tokenized_datasets", "model_datasets"):
        if hasattr(run, name):
            setattr(run, name, copy.copy(getattr(run, name)))
    for each in STAGES[len(shared) : names.index(stage)]:
        if each.name != "equivalence":
            each.do(run)
    run.recipe = recipe
    return run


def result_of(check: str, recipe: Recipe, step: Step | None) -> CheckResult:
    name = check.partition("::")[0]
    stage = next(stage for stage in STAGES if stage.name == name)
    if step is None and (name, recipe) in _documented:
        return _documented[name, recipe][check]
    results = {result.check: result for result in over_all_ranks(stage.run(prepared(recipe, name), step)).checks}
    if step is None:
        _documented[name, recipe] = results
    return results[check]


@pytest.mark.parametrize("check", CHECKS)
def test_check_has_a_mutant(check: str) -> None:
    assert check in {mutant.check for mutant in MUTANTS}, (
        f"write a mutant that {check} catches, and a clean twin, in tests/mutants/mutants.py"
    )


def test_no_mutant_without_a_check() -> None:
    assert {mutant.check for mutant in MUTANTS} <= set(CHECKS)


def in_each_rank(small: Recipe) -> dict[tuple[str, str], tuple[CheckResult, CheckResult]]:
    """What the checks say of the mutants that need several processes, and of their twins."""
    return {
        (mutant.check, mutant.name): (
            result_of(mutant.check, mutant.recipe(small), mutant.broken),
            result_of(mutant.check, mutant.clean_recipe(small), mutant.clean),
        )
        for mutant in MUTANTS
        if mutant.processes > 1
    }


@pytest.fixture(scope="session")
def of_the_ranks(small: Recipe) -> dict[tuple[str, str], tuple[CheckResult, CheckResult]]:
    """All of them in one start: it takes longer than they do."""
    return in_processes(in_each_rank, small, processes=2, patience=60)[0]


def _marks(mutant: Mutant) -> tuple[pytest.MarkDecorator, ...]:
    return (pytest.mark.distributed, pytest.mark.xdist_group("ranks")) if mutant.processes > 1 else ()


each_mutant = pytest.mark.parametrize(
    "mutant", [pytest.param(each, id=f"{each.check}-{each.name}", marks=_marks(each)) for each in MUTANTS]
)


@each_mutant
def test_mutant_is_caught(mutant: Mutant, small: Recipe, request: pytest.FixtureRequest) -> None:
    check = mutant.check
    if mutant.processes > 1:
        result = request.getfixturevalue("of_the_ranks")[check, mutant.name][0]
    else:
        result = result_of(check, mutant.recipe(small), mutant.broken)
    assert result.outcome == "fails"
    for finding in result.findings:
        assert finding.check == check
        assert finding.severity == CHECKS[check].severity
        assert finding.expected
        assert finding.observed
        assert finding.expected != finding.observed
        assert finding.hint
        assert finding.message
        if not check.endswith("::completes"):
            assert finding.expected != "something that can be checked", f"caught by a crash: {finding}"


@each_mutant
def test_clean_twin_passes(mutant: Mutant, small: Recipe, request: pytest.FixtureRequest) -> None:
    if mutant.processes > 1:
        result = request.getfixturevalue("of_the_ranks")[mutant.check, mutant.name][1]
        assert result.outcome == "holds", result
        return
    if mutant.real:
        data: Path = request.getfixturevalue("mrpc")
        recipe = RECIPES["minilm"].with_(data=str(data))
    else:
        recipe = mutant.clean_recipe(small)
    result = result_of(mutant.check, recipe, mutant.clean)
    assert result.outcome == "holds", result
