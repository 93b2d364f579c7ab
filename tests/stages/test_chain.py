"""The chain: it stops at the first stage that fails, and looking does not change the run."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from transformers import set_seed

from harness.documented_run.recipe import RECIPES, Recipe
from harness.documented_run.record import RunRecord
from harness.documented_run.stages import STAGES, Run, Stage, batches, equivalence, evaluate, run_stages
from harness.documented_run.stages.chain import MadeBy, NotMadeYet, Outputs
from harness.errors import CannotTry
from harness.findings import Finding, NotApplicable
from harness.torch_objects import unchanged_random_state


def _stage(name: str, *, fails: bool = False, calls: list[str]) -> Stage:
    stage = Stage(name)
    stage.step(lambda run: calls.append(name))

    @stage.check("step-completes")
    def a_check(run: Run) -> Iterator[Finding]:
        """It holds."""
        if fails:
            yield Finding(expected="1", observed="2", hint="Mend it.")

    return stage


def test_stops_at_the_first_failing_stage() -> None:
    calls: list[str] = []
    stages = [_stage("a", calls=calls), _stage("b", fails=True, calls=calls), _stage("c", calls=calls)]
    results = run_stages(Run(RECIPES["tiny"]), stages)
    assert calls == ["a", "b"]
    assert [result.failed for result in results] == [False, True]


def test_a_step_that_crashes_is_a_finding() -> None:
    stage = Stage("broken")
    nothing: dict[str, None] = {}
    stage.step(lambda run: nothing["missing"])
    (check,) = stage.run(Run(RECIPES["tiny"])).checks
    assert (check.check, check.outcome) == ("broken::completes", "fails")
    assert check.findings[0].observed == "KeyError: 'missing'"
    assert check.findings[0].where is not None
    assert "test_chain.py:" in check.findings[0].where


def test_bad_input_is_no_finding() -> None:
    stage = Stage("load")

    def step(run: Run) -> None:
        raise CannotTry("no data")

    with pytest.raises(CannotTry, match="no data"):
        stage.run(Run(RECIPES["tiny"]), step)


def test_random_state_is_unchanged() -> None:
    def draw() -> tuple[float, float, float]:
        return random.random(), float(np.random.rand()), torch.rand(1).item()

    set_seed(1)
    expected = draw()
    set_seed(1)
    with unchanged_random_state():
        assert draw() == expected
    assert draw() == expected


def test_own_generators_are_unchanged() -> None:
    generator = torch.Generator().manual_seed(3)
    expected = torch.rand(2, generator=torch.Generator().manual_seed(3))
    with unchanged_random_state(generator):
        torch.rand(5, generator=generator)
    assert torch.equal(torch.rand(2, generator=generator), expected)


def _weights(recipe: Recipe, *, checks: bool) -> dict[str, torch.Tensor]:
    set_seed(recipe.seed)
    run = Run(recipe)
    for stage in STAGES:
        if checks:
            assert not stage.run(run).failed
        else:
            stage.do(run)
    return run.model.state_dict()


@pytest.mark.skipif(torch.cuda.is_available(), reason="bit-identity is promised on the CPU")
def test_checks_do_not_change_the_training(small: Recipe) -> None:
    with_checks, without = _weights(small, checks=True), _weights(small, checks=False)
    assert all(torch.equal(tensor, without[name]) for name, tensor in with_checks.items())


@pytest.mark.nightly
def test_random_backbone_learns_less(run_record: RunRecord) -> None:
    """What the pretrained backbone is worth: an epoch from a random one stays clearly below one from it."""
    if run_record.recipe["name"] != "tiny":
        pytest.skip("about the built-in recipe; another was asked for")
    from tests.mutants.mutants import random_backbone

    recipe = RECIPES["tiny"].with_(epochs=1)
    set_seed(recipe.seed)
    run = Run(recipe)
    for stage in STAGES:
        (random_backbone if stage.name == "model" else stage.do)(run)
    assert run.metrics["accuracy"] <= run_record.epochs[0]["accuracy"] - 0.08


@pytest.mark.slow
@pytest.mark.parametrize("until", ["batches"])
def test_documented_figures_with_berts_own_tokenizer(mrpc: Path, bert_base: Path, until: str) -> None:
    """MRPC through bert-base-uncased's tokenizer: every claim about data and tokens applies, and holds."""
    run = Run(Recipe(data=str(mrpc), checkpoint=str(bert_base)))
    names = [stage.name for stage in STAGES]
    for result in run_stages(run, STAGES[: names.index(until) + 1]):
        for check in result.checks:
            assert check.outcome == "holds", check


@pytest.mark.slow
def test_minilm_on_mrpc(mrpc: Path) -> None:
    """A real encoder on real data, for a few updates: all that does not need the whole run applies, and holds."""
    run = Run(RECIPES["minilm"].with_(data=str(mrpc)), updates=3, installation=True)
    outcomes = {check.check: check for result in run_stages(run, STAGES) for check in result.checks}
    others = {name: check for name, check in outcomes.items() if check.outcome != "holds"}
    assert {check.outcome for check in others.values()} == {"not applicable"}
    assert {
        name
        for name, check in others.items()
        if check.reason != "one process" and not str(check.reason).startswith("about loop")
    } == {
        "train::epochs-differ-in-order",
        "train::takes-hours-or-minutes",
        "evaluate::in-the-documented-ball-park",
        "evaluate::trainer-in-the-documented-ball-park",
        "evaluate::beats-the-majority-class",
    }


def test_a_row_that_rounding_decides_is_not_answered_otherwise() -> None:
    logits = torch.tensor([[0.0, 1.0], [1.0, 0.0], [0.5, 0.5 + 1e-5], [0.0, 1.0]])
    assert evaluate.answered_otherwise([1, 0, 0, 1], logits) == []
    assert evaluate.answered_otherwise([1, 1, 0, 1], logits) == [1]
    assert evaluate.answered_otherwise([1, 0, 0], logits) == [3], "a row without an answer"


@pytest.mark.parametrize(
    ("longest", "takes", "reason"),
    [(129, 512, "rows of up to 129 tokens would be cut to 128"), (20, 64, "the model takes 64 tokens")],
)
def test_fixed_length_is_for_rows_and_models_that_it_suits(longest: int, takes: int, reason: str) -> None:
    run = Run(RECIPES["tiny"])
    run.tokenized_datasets = {"validation": {"input_ids": [[1] * longest]}}
    with pytest.raises(NotApplicable, match=reason):
        batches.fixed_length_rows(run, "validation", SimpleNamespace(max_position_embeddings=takes))


def test_fewer_rows_than_an_update_takes_are_not_compared() -> None:
    run = Run(RECIPES["tiny"].with_(loop="accelerate", processes=2))
    with pytest.raises(NotApplicable, match="fewer training rows than the 16 of an update"):
        list(equivalence.check_same_updates(run))


@pytest.mark.parametrize("loop", ["accelerate", "trainer"])
def test_each_output_is_made_by_the_stage_that_it_names(small: Recipe, loop: str) -> None:
    names = {name: made.stage for name, made in vars(Outputs).items() if isinstance(made, MadeBy)}
    run, made_by = Run(small.with_(loop=loop), updates=1), dict[str, str]()
    for stage in STAGES:
        if stage.name not in ("equivalence", "costs", "launch"):
            stage.do(run)
            made_by = {name: stage.name for name in names if name in vars(run)} | made_by
    assert made_by == {name: names[name] for name in made_by}
    only_of_a_trainer = {"scratch", "first_trainer", "trainer", "predictions"}
    assert names.keys() - made_by == (only_of_a_trainer if loop == "accelerate" else {"accelerator"})


def test_an_output_that_is_not_there_yet_names_its_stage(small: Recipe) -> None:
    run = Run(small)
    assert not hasattr(run, "model")
    with pytest.raises(NotMadeYet, match="the stage model, which makes device"):
        _ = run.device


def test_a_check_of_one_loop_does_not_apply_to_another(small: Recipe) -> None:
    stage = Stage("any")

    @stage.check("trainer-only", loops=("trainer",))
    def always_found(run: Run) -> Iterator[Finding]:
        """It never holds."""
        yield Finding("nothing", "something", "None.")

    assert stage.look(always_found, Run(small.with_(loop="trainer"))).failed
    result = stage.look(always_found, Run(small))
    assert (result.outcome, result.reason) == ("not applicable", "about loop trainer; this recipe has plain")
