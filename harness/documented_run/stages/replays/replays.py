"""Replays: what the loops of twins do."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import torch
from accelerate import Accelerator
from torch.optim import SGD, Optimizer
from torch.optim.lr_scheduler import ConstantLR
from torch.utils.data import DataLoader
from tqdm.auto import tqdm
from transformers import PreTrainedModel, Trainer, set_seed

from harness import launch
from harness.documented_run.loops import accelerated, plain
from harness.documented_run.stages import train
from harness.documented_run.stages.chain import Run
from harness.documented_run.stages.replays.results import Replay
from harness.documented_run.stages.replays.twins import (
    comparable,
    copied,
    planned,
    to_float64_without_dropout,
    trainer_twin,
    twin,
    without_dropout,
)
from harness.documented_run.stages.trace import Trace
from harness.torch_objects import unchanged_random_state

WINDOW_ROWS, BATCH, MICRO_BATCH = 21, 8, 2
"""Where accumulation is compared: two windows of four whole micro-batches, and at the end of the epoch one of three,
with 2, 2 and 1 rows."""

MAX_NORM = 0.1
"""Gradients are clipped to this norm there: well below that of a first update, so that it acts."""

DESCENT = 0.1
"""The learning rate there."""

TRAINERS_BATCH = 16
"""The rows of an update for which Trainer's accumulation is compared, whole and in four micro-batches (the course's
section "Fine-tuning a model with the Trainer API": 4 times 4 is 16)."""

BF16_UPDATES = 8

PLACED_UPDATES = 4
"""For which model and batches are placed by hand: more show nothing else."""


def replayed(other: Run) -> Replay:
    """What the twin's loop does."""
    other.progress_bar = tqdm(disable=True)
    set_seed(other.recipe.seed)
    return trace_loop(other.model, other.optimizer, lambda: train.loop(other))


def trace_loop(model: PreTrainedModel, stepped: Optimizer, loop: Callable[[], None]) -> Replay:
    """What a loop does with a model and its optimizer."""
    with Trace(model, stepped, on_event=train.sign_of_life) as trace:
        loop()
    losses = [math.nan if each.loss is None else each.loss for each in trace.forwards if each.gradients]
    return Replay(
        losses=[fmean(ranks) for ranks in zip(*launch.of_all_ranks(losses), strict=True)],
        grad_norms=[update.grad_norm for update in trace.updates],
        parameters={name: parameter.detach().cpu() for name, parameter in model.named_parameters()},
    )


def replayed_in(run: Run, precision: str) -> Replay:
    """Some updates under Accelerate's mixed precision."""
    with unchanged_random_state(), accelerated.separate_state():
        Accelerator(mixed_precision=precision)  # the state that the twin's own shares
        return replayed(twin(run, min(BF16_UPDATES, planned(run)), without_dropout))


@dataclass
class Placed:
    """A dataloader whose batches are put on a device, by the line that Accelerate makes unnecessary."""

    loader: DataLoader[Any]
    device: torch.device

    def __iter__(self) -> Iterator[dict[str, torch.Tensor]]:
        for batch in self.loader:
            yield {k: v.to(self.device) for k, v in batch.items()}


def placed_by_hand(run: Run, loader: Callable[..., Any] = Placed) -> Replay:
    """Some updates under Accelerate with the lines kept that place model and batches, on ``accelerator.device``."""
    other = twin(run, min(PLACED_UPDATES, planned(run)), comparable(run))
    other.model.to(other.accelerator.device)
    other.train_dl = loader(other.train_dl, other.accelerator.device)
    return replayed(other)


def first_rows(run: Run, batch_size: int) -> DataLoader[Any]:
    """The first training rows, in order."""
    rows = run.model_datasets["train"]
    return DataLoader(
        rows.select(range(min(WINDOW_ROWS, len(rows)))), batch_size=batch_size, collate_fn=run.data_collator
    )


def one_batch(run: Run) -> Replay:
    """The plain loop in batches of 8, clipped, with plain gradient descent: what is compared is the gradients."""
    model = copied(run, to_float64_without_dropout)
    descent = SGD(model.parameters(), lr=DESCENT)

    def clips(*_: Any) -> None:
        torch.nn.utils.clip_grad_norm_(model.parameters(), MAX_NORM)

    descent.register_step_pre_hook(clips)  # before the trace's, which gets the clipped gradients
    constant, bar = ConstantLR(descent, factor=1.0), tqdm(disable=True)
    batches_ = first_rows(run, BATCH)
    return trace_loop(
        model, descent, lambda: plain.train(model, batches_, descent, constant, run.device, bar, num_epochs=1)
    )


def micro_batches(run: Run, train_accumulating: Callable[..., None] = accelerated.train_accumulating) -> Replay:
    """The same rows in micro-batches of 2, four of which Accelerate accumulates."""
    with accelerated.separate_state():
        accelerator = Accelerator(gradient_accumulation_steps=BATCH // MICRO_BATCH)
        model = copied(run, to_float64_without_dropout)
        prepared, loader, descent = accelerator.prepare(
            model, first_rows(run, MICRO_BATCH), SGD(model.parameters(), lr=DESCENT)
        )
        return trace_loop(
            model, descent, lambda: train_accumulating(accelerator, prepared, loader, descent, max_norm=MAX_NORM)
        )


def trainers_update(run: Run, micro_batches: int, prepared: Callable[[Trainer], None] = lambda trainer: None) -> Replay:
    """One update by Trainer over the first rows, in ``micro_batches`` micro-batches, by plain gradient descent."""
    constant: dict[str, Any] = {"lr_scheduler_type": "constant", "warmup_steps": 0, "num_train_epochs": 1}
    with accelerated.separate_state():
        other = trainer_twin(
            run,
            adamw=lambda model: SGD(model.parameters(), lr=DESCENT),
            change=to_float64_without_dropout,
            gradient_accumulation_steps=micro_batches,
            **constant,
        )
        rows = run.model_datasets["train"].select(range(TRAINERS_BATCH))
        loader = DataLoader(rows, batch_size=TRAINERS_BATCH // micro_batches, collate_fn=run.data_collator)
        other.trainer.get_train_dataloader = lambda: loader
        prepared(other.trainer)
        return replayed(other)


def takes_no_other_keywords(trainer: Trainer) -> None:
    """What Trainer finds of a model whose forward names all that it takes (before 4.46 it does not ask)."""
    trainer.model_accepts_loss_kwargs = False
