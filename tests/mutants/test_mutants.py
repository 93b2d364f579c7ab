"""Every check can fail, and does not cry wolf: its mutant is caught by it, its clean twin passes it."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from transformers import set_seed

from harness.documented_run.recipe import BUILT_IN, RECIPES, Recipe
from harness.documented_run.stages import CHECKS, STAGES, Run, Stage
from harness.documented_run.stages.chain import Step, over_all_ranks
from harness.findings import CheckResult
from scripts import corpus
from tests.conftest import Shared
from tests.mutants import distributed_and_trainer_mutants, launch_mutants  # noqa: F401, they register their mutants
from tests.mutants.mutants import MUTANTS, Mutant
from tests.rings import first_of_each
from tests.server import server_of

NAMES = [stage.name for stage in STAGES]

ROWS = {"train": 36, "validation": 20, "test": 10}
"""Five batches an epoch, the last one smaller; in two processes three, the last one filled up."""

Results = dict[tuple[str, str], tuple[CheckResult, CheckResult]]
"""What the checks say of a mutant and of its twin, by check and mutant."""

_prepared: dict[tuple[Recipe, int], Run] = {}
_clean: dict[tuple[str, Recipe, Step | None], dict[str, CheckResult]] = {}


def prepared(recipe: Recipe, stage: str) -> Run:
    """A run of its own that has done all steps before ``stage``; those that can be copied are done once."""
    # Without weights of BERT's own, the small ones stand in; the recipe is what the checks look at.
    loadable = recipe if recipe.checkpoint != Recipe().checkpoint else recipe.with_(checkpoint=BUILT_IN)
    set_seed(recipe.seed)
    # What trains is made anew, from the model on: a copied schedule would step the optimizer that it was made for, and
    # what Accelerate prepares refers to a state that all of it shares.
    number = NAMES.index(stage)
    trained = stage == "evaluate" and recipe.loop != "accelerate"
    copied = number if trained else min(number, NAMES.index("model"))
    if (loadable, copied) not in _prepared:
        _prepared[loadable, copied] = done(Run(loadable), STAGES[:copied])
    run = done(copied_run(_prepared[loadable, copied]), STAGES[copied:number])
    run.recipe = recipe
    return run


def done(run: Run, stages: Sequence[Stage]) -> Run:
    for stage in stages:
        if stage.name not in ("equivalence", "costs"):  # they leave nothing for the others
            stage.do(run)
    return run


def copied_run(run: Run) -> Run:
    bar = getattr(run, "progress_bar", None)  # it writes to a terminal, of which there is one
    return copy.deepcopy(run, {id(bar): bar})


def broken_result(check: str, recipe: Recipe, step: Step) -> CheckResult:
    return results_of({check}, recipe, step)[check]


def clean_result(check: str, recipe: Recipe, step: Step | None) -> CheckResult:
    """One run is a twin for several mutants: all checks of which it is look at it."""
    key = check.partition("::")[0], recipe, step
    if key not in _clean:
        checks = {check} | {
            each.check for each in MUTANTS if each.check.startswith(f"{key[0]}::") and each.clean is step
        }
        _clean[key] = results_of(checks, recipe, step)
    return _clean[key][check]


def results_of(checks: Collection[str], recipe: Recipe, step: Step | None) -> dict[str, CheckResult]:
    """What some checks of a stage say of a run with this step."""
    (name,) = {check.partition("::")[0] for check in checks}
    stage = copy.copy(STAGES[NAMES.index(name)])
    stage.checks = [each for each in stage.checks if each.id in checks]
    results = over_all_ranks(stage.run(prepared(recipe, stage.name), step)).checks
    return {result.check: result for result in results}


@pytest.fixture(scope="module", autouse=True)
def _let_go() -> Iterator[None]:
    """What is prepared holds models and schedules, which a watch of the same process would find."""
    yield
    _prepared.clear()
    _clean.clear()


@pytest.fixture(scope="session")
def small(small: Recipe, tmp_path_factory: pytest.TempPathFactory) -> Recipe:
    """The small recipe with half the rows to train on."""
    folder = tmp_path_factory.mktemp("smaller")
    corpus.raw_datasets(seed=7, split_rows=ROWS).save_to_disk(str(folder))
    return small.with_(data=str(folder))


@pytest.mark.parametrize("check", CHECKS)
def test_check_has_a_mutant(check: str) -> None:
    assert check in {mutant.check for mutant in MUTANTS}, (
        f"write a mutant that {check} catches, and a clean twin, in tests/mutants/mutants.py"
    )


def test_no_mutant_without_a_check() -> None:
    assert {mutant.check for mutant in MUTANTS} <= set(CHECKS)


def in_each_rank(small: Recipe) -> Results:
    """What the checks say of the mutants that need several processes, and of their twins."""
    return {
        (mutant.check, mutant.name): (
            broken_result(mutant.check, mutant.recipe(small), mutant.broken),
            clean_result(mutant.check, mutant.clean_recipe(small), mutant.clean),
        )
        for mutant in MUTANTS
        if mutant.processes > 1
    }


@pytest.fixture(scope="session")
def of_the_ranks(small: Recipe, shared: Shared, pytestconfig: pytest.Config) -> Results:
    """All of them in one start, for all workers: it takes longer than they do."""

    def make(folder: Path) -> None:
        folder.mkdir()
        (folder / "recipe").write_bytes(pickle.dumps(small))
        how: dict[str, Any] = {"processes": 2, "environment": {"ACCELERATE_USE_CPU": "true"}, "limit": 300}
        done = server_of(pytestconfig).run(folder, "recipe", "found", program="tests.mutants.in_ranks", **how)
        assert done.status == 0, done.stderr

    found: Results = pickle.loads((shared("ranks", make) / "found").read_bytes())
    return found


GUARDS = first_of_each(
    (f"{mutant.check} {mutant.name}" for mutant in MUTANTS), kind=lambda name: name.partition(" ")[0]
)
"""One mutant of each check guards every change; its further ones are nightly."""


def _marks(mutant: Mutant) -> tuple[pytest.MarkDecorator, ...]:
    several = mutant.processes > 1
    trains_often = mutant.check.startswith(("equivalence::", "costs::"))
    slow = mutant.slow or several
    # Each really starts train.py, for ten seconds; tests/stages/test_launch.py guards what the checks say of a start.
    starts = mutant.check.startswith("launch::")
    nightly = starts or trains_often or f"{mutant.check} {mutant.name}" not in GUARDS
    rings = (pytest.mark.nightly,) * nightly + (pytest.mark.slow,) * (slow and not nightly)
    return (*rings, *(pytest.mark.distributed,) * several)


each_mutant = pytest.mark.parametrize(
    "mutant", [pytest.param(each, id=f"{each.check}-{each.name}", marks=_marks(each)) for each in MUTANTS]
)


@each_mutant
def test_mutant_is_caught(mutant: Mutant, small: Recipe, request: pytest.FixtureRequest) -> None:
    check = mutant.check
    if mutant.processes > 1:
        result = request.getfixturevalue("of_the_ranks")[check, mutant.name][0]
    else:
        result = broken_result(check, mutant.recipe(small), mutant.broken)
    assert result.outcome == "fails"
    for finding in result.findings:
        assert finding.check == check
        assert finding.severity == CHECKS[check].severity
        assert finding.expected
        assert finding.observed
        assert finding.expected != finding.observed
        assert finding.hint
        assert finding.message not in ("", CHECKS[check].statement)  # it says what is wrong, not what would be right
        if not check.endswith("::completes"):
            assert finding.expected != "something that can be checked", f"caught by a crash: {finding}"


@pytest.mark.slow
@each_mutant
def test_clean_twin_passes(mutant: Mutant, small: Recipe, request: pytest.FixtureRequest) -> None:
    if mutant.processes > 1:
        result = request.getfixturevalue("of_the_ranks")[mutant.check, mutant.name][1]
        assert result.outcome == "holds", "\n".join(map(str, result.findings)) or result.reason
        return
    if mutant.real:
        data: Path = request.getfixturevalue("mrpc")
        recipe = RECIPES["minilm"].with_(data=str(data))
    else:
        recipe = mutant.clean_recipe(small)
    result = clean_result(mutant.check, recipe, mutant.clean)
    assert result.outcome == "holds", "\n".join(map(str, result.findings)) or result.reason
