"""The loop under Accelerate (document "Supercharge your training loop with Accelerate").

The plain loop with the document's changed lines: no device, ``accelerator.backward``. What the loops go through and
call is what ``accelerator.prepare`` returned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.data_loader import DataLoaderShard
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler
from torch.utils.data import DataLoader
from tqdm.auto import tqdm

from harness.compat import shared_states


def train(
    accelerator: Accelerator,
    model: torch.nn.Module,
    train_dl: DataLoader[Any],
    optimizer: Optimizer,
    lr_scheduler: LRScheduler,
    progress_bar: tqdm[Any],
    *,
    num_epochs: int,
    updates: int | None = None,
    after_epoch: Callable[[], None] = lambda: None,
) -> None:
    """The document's training loop, which can stop after ``updates`` updates and calls ``after_epoch``."""
    made = 0
    model.train()
    for _ in range(num_epochs):
        for batch in train_dl:
            outputs = model(**batch)
            loss = outputs.loss
            accelerator.backward(loss)

            optimizer.step()
            lr_scheduler.step()
            optimizer.zero_grad()
            progress_bar.update(1)

            made += 1
            if made == updates:
                return
        after_epoch()


def train_accumulating(
    accelerator: Accelerator,
    model: torch.nn.Module,
    train_dl: DataLoaderShard,
    optimizer: Optimizer,
    *,
    max_norm: float | None = None,
) -> None:
    """One epoch in which every ``accelerator.gradient_accumulation_steps`` micro-batches make one update.

    Accelerate divides each micro-batch's mean loss by the number of micro-batches of a whole window. At the end of an
    epoch the window may have fewer, and the last of them fewer rows: each loss is weighted by its rows, so that every
    row of a window counts the same, as in one batch (Accelerate's guide "Performing gradient accumulation").
    """
    micro_batches = accelerator.gradient_accumulation_steps
    sampler: Any = train_dl.batch_sampler
    shares_batches = getattr(sampler, "split_batches", False)
    rows_in_micro_batch = sampler.batch_size // (accelerator.num_processes if shares_batches else 1)
    # With several processes Accelerate fills every batch up.
    alone = accelerator.num_processes == 1
    rows_left = len(train_dl.dataset) if alone else len(train_dl) * rows_in_micro_batch
    for number, batch in enumerate(train_dl):
        if number % micro_batches == 0:
            rows_in_window = min(micro_batches * rows_in_micro_batch, rows_left)
        with accelerator.accumulate(model):
            rows = len(batch["labels"])
            loss = model(**batch).loss * (micro_batches * rows / rows_in_window)
            accelerator.backward(loss)
            if max_norm is not None and accelerator.sync_gradients:
                accelerator.clip_grad_norm_(model.parameters(), max_norm)
            optimizer.step()
            optimizer.zero_grad()
            rows_left -= rows


def evaluate(
    accelerator: Accelerator, model: torch.nn.Module, eval_dl: DataLoader[Any], metric: Any
) -> dict[str, float]:
    """The document's evaluation loop; what the metric computes, accuracy and F1 as fractions.

    ``gather_for_metrics`` brings the rows of all processes together and drops those that Accelerate repeated to fill
    the last batch; plain ``gather`` would count them twice.
    """
    model.eval()
    for batch in eval_dl:
        with torch.no_grad():
            outputs = model(**batch)

        predictions = outputs.logits.argmax(dim=-1)
        predictions, references = accelerator.gather_for_metrics((predictions, batch["labels"]))
        metric.add_batch(predictions=predictions, references=references)

    scores: dict[str, float] = metric.compute()
    return scores


@contextmanager
def separate_state() -> Iterator[None]:
    """Accelerators made inside share nothing with those outside but the processes.

    All of them share one state otherwise: precision could not be chosen anew, and the number of micro-batches would
    change for those that exist already. Trainer also makes the state of the processes anew.
    """
    shared = shared_states()
    before = [dict(state) for state in shared]
    for state in shared[:2]:
        state.clear()
    try:
        yield
    finally:
        for state, values in zip(shared, before, strict=True):
            state.clear()
            state.update(values)
