"""The loop under Accelerate: the plain loop's updates, in one process and in several."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState, GradientState

from harness.documented_run.loops import accelerated
from harness.documented_run.recipe import RECIPES, Recipe
from harness.documented_run.record import RunRecord
from harness.documented_run.run import run_recipe
from harness.documented_run.stages import Run, equivalence
from harness.documented_run.stages.replays.replays import replayed_in
from harness.documented_run.stages.replays.results import Replay
from tests.versions import installed

on_the_cpu = pytest.mark.skipif(torch.cuda.is_available(), reason="bit-identity is promised on the CPU")


def same_training(plain: RunRecord, accelerate: RunRecord) -> None:
    """Bit for bit: every loss, learning rate, gradient norm, metric and weight."""
    assert not accelerate.failed
    assert plain.updates == accelerate.updates
    assert plain.curves == accelerate.curves
    assert (plain.epochs, plain.metrics, plain.weights) == (accelerate.epochs, accelerate.metrics, accelerate.weights)


@pytest.mark.slow
@on_the_cpu
def test_equals_the_plain_loop(small_run: Callable[[str], Path]) -> None:
    same_training(RunRecord.read(small_run("plain")), RunRecord.read(small_run("accelerate")))


@on_the_cpu
@pytest.mark.nightly
def test_the_built_in_recipe_begins_as_in_the_plain_loop(run_record: RunRecord) -> None:
    if run_record.recipe["name"] != "tiny":
        pytest.skip("about the built-in recipe; another was asked for")
    record = run_recipe(RECIPES["tiny"].with_(loop="accelerate"), updates=40)
    assert not record.failed, record.findings
    assert record.curves.loss == run_record.curves.loss[:40]
    assert record.curves.lr == run_record.curves.lr[:40]
    assert record.curves.grad_norm == run_record.curves.grad_norm[:40]


@pytest.mark.nightly
@pytest.mark.distributed
def test_four_processes(small: Recipe) -> None:
    every_check_holds(run_recipe(small.with_(loop="accelerate", processes=4), timeout=120), updates=2 * 2)


@pytest.mark.nightly
@pytest.mark.distributed
def test_two_processes_that_share_each_batch_started_by_torchrun(small: Recipe, tmp_path: Path) -> None:
    recipe = tmp_path / "mine.py"
    split = small.with_(loop="accelerate", processes=2, split_batches=True)
    recipe.write_text(f"from harness.documented_run.recipe import Recipe\nsplit = {split!r}\n")
    torchrun = [str(Path(sys.executable).with_name("torchrun")), "--standalone", "--nproc-per-node", "2"]
    output = subprocess.run(
        [*torchrun, "-m", "harness", "run", "--recipe", f"{recipe}:split", "--output", "out"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=os.environ | {"ACCELERATE_USE_CPU": "true", "OMP_NUM_THREADS": "1"},
    )
    assert output.returncode == 0, output.stdout + output.stderr
    assert output.stdout.count("equivalence 2 passed") == 1, "one rank speaks for all"
    every_check_holds(RunRecord.read(tmp_path / "out"), updates=2 * 8)
    weights = "model.safetensors" if installed("transformers>=4.35") else "pytorch_model.bin"
    assert (tmp_path / "out" / "model" / weights).is_file()


def every_check_holds(record: RunRecord, *, updates: int) -> None:
    """Rows once, equal ranks, the plain loop's losses, one process's metrics, learning rate 0."""
    assert not record.failed, record.findings
    assert record.updates == updates
    for check in (
        "prepare::as-many-processes-as-asked",
        "equivalence::accelerate-trains-as-the-plain-loop",
        "train::parameters-equal-on-all-ranks",
        "train::each-row-once-an-epoch",
        "evaluate::metrics-are-those-of-one-process",
        "evaluate::adds-every-batch",
        "schedule::ends-at-zero",
        "train::lr-follows-the-schedule",
    ):
        assert record.check(check).outcome == "holds", check


def test_separate_state_is_put_back() -> None:
    outside = Accelerator()
    before = dict(AcceleratorState._shared_state), dict(GradientState._shared_state)
    with accelerated.separate_state():
        inside = Accelerator(mixed_precision="bf16", gradient_accumulation_steps=4)
        assert (inside.mixed_precision, inside.gradient_accumulation_steps) == ("bf16", 4)
    assert before == (AcceleratorState._shared_state, GradientState._shared_state)
    assert (outside.mixed_precision, outside.gradient_accumulation_steps) == ("no", 1)


@pytest.mark.slow
@pytest.mark.parametrize("loop", ["accelerate", pytest.param("trainer", marks=pytest.mark.nightly)])
def test_a_run_leaves_accelerates_state_as_it_was(small: Recipe, loop: str) -> None:
    Accelerator()
    before = dict(AcceleratorState._shared_state)
    run_recipe(small.with_(loop=loop), updates=1, until="schedule")
    assert before == AcceleratorState._shared_state


@pytest.mark.nightly
@pytest.mark.parametrize(
    "changes",
    [
        {"split_batches": True},
        {"batch_size": 59},  # a last batch of one row
        {"batch_size": 1000},
        {"shuffle": False},
        {"schedule": "cosine", "warmup_updates": 3},
    ],
    ids=str,
)
def test_other_values(small: Recipe, changes: dict[str, object]) -> None:
    record = run_recipe(small.with_(loop="accelerate", **changes), updates=2)
    assert not record.failed, record.findings


@pytest.mark.slow
def test_a_model_without_bf16(small: Recipe, monkeypatch: pytest.MonkeyPatch) -> None:
    """The recipe does not ask for it."""

    def refuses(run: Run, precision: str) -> Replay:
        if precision == "bf16":
            raise RuntimeError("value cannot be converted to type c10::BFloat16 without overflow")
        return replayed_in(run, precision)

    monkeypatch.setattr(equivalence, "replayed_in", refuses)
    record = run_recipe(small.with_(loop="accelerate"), updates=1)
    assert not record.failed, record.findings
    reason = record.check("equivalence::bf16-stays-near-float32").reason
    assert reason == "not on cpu: RuntimeError: value cannot be converted to type c10::BFloat16 without overflow"


def test_only_accelerate_has_several_processes(small: Recipe) -> None:
    for changes in ({"processes": 2}, {"split_batches": True}, {"loop": "trainer", "processes": 2}):
        with pytest.raises(ValueError, match="need loop accelerate"):
            dataclasses.replace(small, **changes)
    with pytest.raises(ValueError, match="batch_size must be a multiple of processes, found 8 rows for 3 processes"):
        small.with_(loop="accelerate", processes=3, split_batches=True)
