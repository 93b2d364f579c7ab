"""Trainer: what it does by default, and where it is not the loop by hand."""

from __future__ import annotations

import re

import pytest
import torch

from harness.recipe import Recipe
from harness.record import RunRecord
from harness.report.terminal import outcome_lines
from harness.run import run_recipe


@pytest.fixture(scope="module")
def record(small: Recipe) -> RunRecord:
    return run_recipe(small.with_(loop="trainer"))


def test_every_check_holds(record: RunRecord) -> None:
    assert not record.failed, record.findings
    assert record.updates == record.updates_planned == 16
    assert len(record.epochs) == 2
    assert record.epochs[-1] == record.metrics
    assert record.check("equivalence::trainer-without-its-differences-is-the-plain-loop").outcome == "holds"


def test_differences_are_stated_and_measured(record: RunRecord) -> None:
    found = {each.what: each for each in record.differences}
    clipping, decay, groups, epsilon, kernel, order, then = found.values()
    assert (clipping.what, clipping.there, clipping.by_hand) == ("gradient clipping (max_grad_norm)", "1.0", "none")
    assert (decay.what, decay.there, decay.by_hand) == ("weight decay", "0.0", "0.01")
    assert groups.there.startswith("2; ")
    assert (epsilon.there, epsilon.by_hand, epsilon.effect) == ("1e-08", "1e-08", 0.0)
    assert kernel.there in ("fused", "default")
    assert (order.what, then.by_hand) == ("data order", "epsilon 1e-08, decay 0.01")
    assert then.there == "epsilon 1e-06, decay 0.0"
    # Two updates on other rows are farther apart than anything that an optimizer's setting does in sixteen.
    assert order.effect > max(clipping.effect, decay.effect, groups.effect) > 0
    assert then.effect > 0


def test_differences_are_printed(record: RunRecord) -> None:
    lines = list(outcome_lines(record, None))
    start = lines.index('Trainer is not the loop by hand, which has "the same defaults":') + 2
    table = [re.split(r"  +", line.strip()) for line in lines[start : start + 7]]
    assert table[0][:3] == ["gradient clipping (max_grad_norm)", "1.0", "none"]
    assert table[0][3].startswith("up to ")
    assert table[3] == ["AdamW's epsilon", "1e-08", "1e-08", "nothing"]
    assert table[6][0] == "the documents' transformers.AdamW"


def test_stopped_early_is_the_beginning_of_the_same_run(small: Recipe, record: RunRecord) -> None:
    short = run_recipe(small.with_(loop="trainer"), updates=3)
    assert not short.failed, short.findings
    assert (short.updates, short.updates_planned) == (3, 16)
    assert short.curves.lr == record.curves.lr[:3]
    if not torch.cuda.is_available():  # bit-identity is promised on the CPU
        assert short.curves.loss == record.curves.loss[:3]
        assert short.curves.grad_norm == record.curves.grad_norm[:3]


def test_a_label_of_another_name(small: Recipe, tmp_path) -> None:  # type: ignore[no-untyped-def]
    from datasets import load_from_disk

    data = load_from_disk(str(small.data)).rename_column("label", "paraphrase")
    data.save_to_disk(tmp_path)
    record = run_recipe(small.with_(loop="trainer", data=str(tmp_path), label_column="paraphrase"), updates=1)
    assert not record.failed, record.findings
