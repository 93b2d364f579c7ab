"""Trainer: what it does by default, and where it is not the loop by hand."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from harness.documented_run.recipe import Recipe
from harness.documented_run.record import RunRecord
from harness.documented_run.run import run_recipe
from harness.documented_run.stages import STAGES, Run
from harness.documented_run.stages.replays.differences import trainer_differences
from harness.report.terminal import outcome_lines


@pytest.fixture(scope="module")
def record(small_run: Callable[[str], Path]) -> RunRecord:
    return RunRecord.read(small_run("trainer"))


@pytest.mark.nightly
def test_every_check_holds(record: RunRecord) -> None:
    assert not record.failed, record.findings
    assert record.updates == record.updates_planned == 16
    assert len(record.epochs) == 2
    assert record.epochs[-1] == record.metrics
    assert record.check("equivalence::trainer-without-its-differences-is-the-plain-loop").outcome == "holds"


@pytest.mark.nightly
def test_differences_are_stated_and_measured(record: RunRecord) -> None:
    clipping, *adamw, groups, order, then = record.differences
    assert (clipping.what, clipping.there, clipping.by_hand) == ("gradient clipping (max_grad_norm)", "1.0", "none")
    set_otherwise = {each.what: (each.there, each.by_hand) for each in adamw}
    fused = set_otherwise.pop("AdamW's fused", ("True", "None"))  # from transformers 4.54 on, with torch 2.8 or newer
    assert fused == ("True", "None")
    of_transformers = ("transformers.AdamW", "torch.optim.AdamW")  # until 4.31
    assert set_otherwise.pop("AdamW's class", of_transformers) == of_transformers
    assert set_otherwise == {"AdamW's eps": ("1e-08", "1e-08"), "AdamW's weight_decay": ("0.0", "0.01")}
    assert groups.there.startswith("2; ")
    assert (order.what, then.by_hand) == ("data order", "epsilon 1e-08, decay 0.01")
    assert then.there == "epsilon 1e-06, decay 0.0"
    effects = {each.what: each.effect for each in record.differences}
    assert effects.pop("AdamW's eps") == 0.0
    assert all(effects.values())
    # Two updates on other rows are farther apart than anything that an optimizer's setting does in sixteen.
    assert max(effects, key=effects.__getitem__) == "data order"


def test_no_setting_of_adamw_is_left_out(small: Recipe) -> None:
    """The list is made from what Trainer's own optimizer has."""
    run = Run(small.with_(loop="trainer"))
    for stage in STAGES[: [stage.name for stage in STAGES].index("equivalence")]:
        stage.do(run)
    run.optimizer.param_groups[0]["betas"] = (0.5, 0.5)
    listed = {what: (there, by_hand) for what, there, by_hand, _ in trainer_differences(run)}
    assert listed["AdamW's betas"] == ("(0.5, 0.5)", "(0.9, 0.999)")


HEADING = 'Trainer differs from the plain loop, though the document says "the same defaults"; each difference alone:'


@pytest.mark.nightly
def test_differences_are_printed(record: RunRecord) -> None:
    lines = list(outcome_lines(record, None))
    start = lines.index(HEADING) + 2
    table = [re.split(r"  +", line.strip()) for line in lines[start : start + len(record.differences)]]
    assert table[0][:3] == ["gradient clipping (max_grad_norm)", "1.0", "none"]
    assert table[0][3].startswith("up to ")
    assert ["AdamW's eps", "1e-08", "1e-08", "nothing"] in table
    assert table[-1][0] == "the documents' transformers.AdamW"


@pytest.mark.nightly
def test_stopped_early_is_the_beginning_of_the_same_run(small: Recipe, record: RunRecord) -> None:
    short = run_recipe(small.with_(loop="trainer"), updates=3)
    assert not short.failed, short.findings
    assert (short.updates, short.updates_planned) == (3, 16)
    assert short.curves.lr == record.curves.lr[:3]
    if not torch.cuda.is_available():  # bit-identity is promised on the CPU
        assert short.curves.loss == record.curves.loss[:3]
        assert short.curves.grad_norm == record.curves.grad_norm[:3]


@pytest.mark.nightly
def test_a_label_of_another_name(small: Recipe, tmp_path: Path) -> None:
    from datasets import load_from_disk

    data = load_from_disk(str(small.data)).rename_column("label", "paraphrase")
    data.save_to_disk(str(tmp_path))
    record = run_recipe(small.with_(loop="trainer", data=str(tmp_path), label_column="paraphrase"), updates=1)
    assert not record.failed, record.findings


def test_experiment_trackers_are_left_alone(small: Recipe) -> None:
    """Before transformers 5 TrainingArguments(folder) reports to whatever is installed; evaluating would start it."""
    run = Run(small.with_(loop="trainer"))
    for stage in STAGES[: [stage.name for stage in STAGES].index("optimizer")]:
        stage.do(run)
    for each in (run.first_trainer, run.trainer):
        assert [type(callback).__name__ for callback in each.callback_handler.callbacks] == ["DefaultFlowCallback"]


def test_trainer_always_shuffles(small: Recipe) -> None:
    with pytest.raises(ValueError, match="Trainer shuffles its training data"):
        small.with_(loop="trainer", shuffle=False)
