"""Property tests: any sentences through tokenizer and collator, any length of schedule."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.optim import AdamW

from harness.documented_run.recipe import RECIPES, Recipe
from harness.documented_run.stages import STAGES, Run, schedule
from harness.documented_run.stages.model import evaluated
from harness.documented_run.stages.schedule import linear_lr, rehearsed_lrs
from scripts.generator import vocabulary

WORDS = [piece for piece in vocabulary() if piece.isalnum()]
SENTENCE = st.lists(st.sampled_from(WORDS), min_size=1, max_size=40).map(" ".join)
ROWS = st.lists(st.tuples(SENTENCE, SENTENCE, st.integers(0, 1)), min_size=1, max_size=8)


@pytest.fixture(scope="module")
def run(small: Recipe) -> Run:
    run = Run(small)
    for stage in STAGES[:5]:
        stage.do(run)
    run.model.eval()
    return run


def features(run: Run, rows: list[tuple[str, str, int]]) -> list[dict[str, torch.Tensor]]:
    encoded = [run.tokenize_function({"sentence1": a, "sentence2": b}) for a, b, _ in rows]
    return [
        {name: torch.tensor(values) for name, values in each.items()} | {"labels": torch.tensor(label)}
        for each, (_, _, label) in zip(encoded, rows, strict=True)
    ]


@given(rows=ROWS)
@settings(deadline=None, max_examples=40)
def test_collator_pads_and_loses_nothing(run: Run, rows: list[tuple[str, str, int]]) -> None:
    single = features(run, rows)
    batch = run.data_collator([dict(each) for each in single])
    longest = max(len(each["input_ids"]) for each in single)
    assert batch["input_ids"].shape == (len(rows), longest)
    assert batch["labels"].tolist() == [label for _, _, label in rows]
    for each, ids, mask, types in zip(
        single, batch["input_ids"], batch["attention_mask"], batch["token_type_ids"], strict=True
    ):
        length = len(each["input_ids"])
        assert torch.equal(ids[:length], each["input_ids"])
        assert torch.equal(types[:length], each["token_type_ids"])
        assert mask.tolist() == [1] * length + [0] * (longest - length)
        assert (ids[length:] == run.tokenizer.pad_token_id).all()


@given(rows=ROWS)
@settings(deadline=None, max_examples=25)
def test_padding_never_moves_the_logits(run: Run, rows: list[tuple[str, str, int]]) -> None:
    """A row alone, unpadded, has the logits that it has in any batch."""
    single = features(run, rows)
    together = evaluated(run, dict(run.data_collator([dict(each) for each in single]))).logits
    for each, logits in zip(single, together, strict=True):
        alone = evaluated(run, {name: values[None] for name, values in each.items()}).logits[0]
        assert torch.allclose(alone, logits, atol=1e-5)


@given(batches=st.integers(1, 200), epochs=st.integers(1, 4), lr=st.floats(1e-6, 1e-1))
@settings(deadline=None, max_examples=40)
def test_schedule_of_any_length(batches: int, epochs: int, lr: float) -> None:
    """The closed form at every update, exactly 0 at the end, never negative, never rising; and put back afterwards."""
    run = Run(RECIPES["tiny"].with_(epochs=epochs, lr=lr))
    run.train_dl = range(batches)  # type: ignore[assignment]  # only its length is asked for
    run.optimizer = AdamW([torch.nn.Parameter(torch.zeros(1))], lr=lr)
    schedule.schedule(run)
    lrs = rehearsed_lrs(run)
    assert run.num_training_steps == batches * epochs == len(lrs) - 1
    for made, observed in enumerate(lrs):
        assert math.isclose(observed, lr * (1 - made / (batches * epochs)), rel_tol=1e-9, abs_tol=1e-15)
        assert math.isclose(observed, linear_lr(run.recipe, made, batches * epochs), rel_tol=1e-9, abs_tol=1e-15)
    assert lrs[0] == lr
    assert lrs[-1] == 0.0
    assert lrs == sorted(lrs, reverse=True)
    assert run.optimizer.param_groups[0]["lr"] == lr
    assert rehearsed_lrs(run) == lrs


@given(warmup=st.integers(1, 20), updates=st.integers(21, 100))
@settings(deadline=None, max_examples=20)
def test_warmup_follows_the_closed_form(warmup: int, updates: int) -> None:
    run = Run(RECIPES["tiny"].with_(epochs=1, warmup_updates=warmup))
    run.train_dl = range(updates)  # type: ignore[assignment]
    run.optimizer = AdamW([torch.nn.Parameter(torch.zeros(1))], lr=run.recipe.lr)
    schedule.schedule(run)
    expected = [linear_lr(run.recipe, made, updates) for made in range(updates + 1)]
    assert rehearsed_lrs(run) == pytest.approx(expected, rel=1e-9, abs=1e-15)
    assert expected[warmup] == run.recipe.lr
