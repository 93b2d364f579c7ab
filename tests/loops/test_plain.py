"""The plain loop is the document's: same losses and weights, bit for bit, watched or not."""

from __future__ import annotations

import inspect

import pytest
import torch
from transformers import set_seed

from harness.documented_run.loops import plain
from harness.documented_run.recipe import Recipe
from harness.documented_run.stages import STAGES, Run, train
from harness.documented_run.stages.train import progress_bar


def prepared(recipe: Recipe) -> Run:
    set_seed(recipe.seed)
    run = Run(recipe)
    for stage in STAGES[:-2]:
        stage.do(run)
    return run


def documented(recipe: Recipe) -> tuple[list[float], dict[str, torch.Tensor]]:
    """The document's loop, written out and unwatched; losses and weights."""
    run, losses = prepared(recipe), []
    model, optimizer, lr_scheduler = run.model, run.optimizer, run.lr_scheduler
    model.train()
    for _ in range(recipe.epochs):
        for batch in run.train_dataloader:
            loss = model(**batch).loss
            loss.backward()
            optimizer.step()
            lr_scheduler.step()
            optimizer.zero_grad()
            losses.append(loss.item())
    return losses, model.state_dict()


def watched(recipe: Recipe) -> tuple[list[float], dict[str, torch.Tensor]]:
    """The train stage, with its trace and its evaluation after each epoch."""
    run = prepared(recipe)
    train.train(run)
    losses = [forward.loss for forward in run.training.forwards if forward.gradients and forward.loss is not None]
    return losses, run.model.state_dict()


@pytest.mark.skipif(torch.cuda.is_available(), reason="bit-identity is promised on the CPU")
def test_watched_run_equals_the_document_loop(small: Recipe) -> None:
    (expected_losses, expected), (losses, weights) = documented(small), watched(small)
    assert losses == expected_losses
    assert all(torch.equal(tensor, weights[name]) for name, tensor in expected.items())


@pytest.mark.nightly
@pytest.mark.skipif(torch.cuda.is_available(), reason="bit-identity is promised on the CPU")
def test_same_seed_twice(small: Recipe) -> None:
    (first_losses, first), (second_losses, second) = watched(small), watched(small)
    assert first_losses == second_losses
    assert all(torch.equal(tensor, second[name]) for name, tensor in first.items())


@pytest.mark.nightly
def test_another_seed_is_another_run(small: Recipe) -> None:
    assert watched(small)[0] != watched(small.with_(seed=43))[0]


@pytest.mark.parametrize(
    ("updates", "epochs_ended"),
    [(1, 0), (9, 1)] + [pytest.param(*each, marks=pytest.mark.slow) for each in [(8, 0), (None, 2)]],
)
def test_stops_after_updates(small: Recipe, updates: int | None, epochs_ended: int) -> None:
    """The small corpus has 8 batches an epoch; an epoch that is cut at its last batch has not been evaluated."""
    run, ended = prepared(small), []
    bar = progress_bar(run.num_training_steps)
    with bar:
        plain.train(
            run.model, run.train_dataloader, run.optimizer, run.lr_scheduler, run.device, bar,
            num_epochs=small.epochs, updates=updates, after_epoch=lambda: ended.append(bar.n),
        )  # fmt: skip
    assert bar.n == (updates or run.num_training_steps)
    assert len(ended) == epochs_ended


def test_reads_like_the_document() -> None:
    """The document's lines, in its order."""
    lines = [
        "model.train()",
        "for batch in train_dataloader:",
        "batch = {k: v.to(device) for k, v in batch.items()}",
        "outputs = model(**batch)",
        "loss = outputs.loss",
        "loss.backward()",
        "optimizer.step()",
        "lr_scheduler.step()",
        "optimizer.zero_grad()",
        "progress_bar.update(1)",
    ]
    source = [line.strip() for line in inspect.getsource(plain.train).splitlines()]
    assert [line for line in source if line in lines] == lines
