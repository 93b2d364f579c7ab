"""Trainer (document 001, "Fine-tuning a model with the Trainer API")."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch.utils.data import DataLoader
from transformers import (
    DefaultFlowCallback,
    EvalPrediction,
    Trainer,
    TrainerCallback,
    TrainerControl,
    TrainerState,
    TrainingArguments,
)
from transformers.trainer import TRAINER_STATE_NAME
from transformers.utils import logging

from harness.compat import evaluation_strategy
from harness.documented_run.metrics import load_metric
from harness.documented_run.recipe import DOCUMENTED_METRICS, Recipe

if TYPE_CHECKING:
    from tqdm.auto import tqdm


def compute_metrics(eval_preds: EvalPrediction, metrics: Sequence[str] = DOCUMENTED_METRICS) -> dict[str, float]:
    """The document's: accuracy and F1 of the argmax, as fractions; or the metrics that a recipe names."""
    metric = load_metric(metrics)
    logits, labels = eval_preds
    predictions = np.argmax(logits, axis=-1)
    scores: dict[str, float] = metric.compute(predictions=predictions, references=labels)
    return scores


def training_arguments(recipe: Recipe, folder: str, **changes: Any) -> TrainingArguments:
    """The document's ``TrainingArguments("test-trainer", evaluation_strategy="epoch")`` with the recipe's values.

    Nothing is saved or reported: no checkpoint, no experiment tracker.
    """
    return TrainingArguments(
        folder,
        **evaluation_strategy("epoch")
        | {
            "learning_rate": recipe.lr,
            "lr_scheduler_type": recipe.schedule,
            "warmup_steps": recipe.warmup_updates,
            "num_train_epochs": recipe.epochs,
            "per_device_train_batch_size": recipe.batch_size,
            "per_device_eval_batch_size": recipe.batch_size,
            "seed": recipe.seed,
            "save_strategy": "no",
            "report_to": "none",
            "dataloader_pin_memory": torch.cuda.is_available(),  # torch warns of it otherwise, once a dataloader
        }
        | changes,
    )


def quiet_trainer(*args: Any, kind: type[Trainer] = Trainer, **kwargs: Any) -> Trainer:
    """A Trainer without its own bar, printed logs and experiment trackers."""
    verbosity = logging.get_verbosity()
    trainer = kind(*args, **kwargs)
    logging.set_verbosity(verbosity)  # which Trainer sets for all of transformers
    for callback in list(trainer.callback_handler.callbacks):
        if not isinstance(callback, DefaultFlowCallback):
            trainer.remove_callback(callback)
    return trainer


class AfterEachUpdate(TrainerCallback):
    """Ticks the bar, and stops the training after ``updates`` updates; ``after_epoch`` is told the dataloader."""

    def __init__(
        self, progress_bar: tqdm[Any], updates: int | None, after_epoch: Callable[[DataLoader[Any]], None]
    ) -> None:
        self.progress_bar = progress_bar
        self.updates = updates
        self.after_epoch = after_epoch

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> TrainerControl:
        self.progress_bar.update(1)
        if state.global_step == self.updates:
            control.should_training_stop = True
        return control

    def on_evaluate(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        # The last that Trainer does in an epoch.
        self.after_epoch(kwargs["train_dataloader"])


class Resumed(TrainerCallback):
    """A training that goes on: how far it was is in ``folder``, and the rest is put back when Trainer comes to it."""

    def __init__(
        self,
        folder: str,
        load: Callable[[Any, Any], None],
        begin_epoch: Callable[[DataLoader[Any]], None],
    ) -> None:
        self.folder = folder
        self.load = load
        self.begin_epoch: Callable[[DataLoader[Any]], None] | None = begin_epoch

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        self.load(kwargs["optimizer"], kwargs["lr_scheduler"])

    def on_epoch_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        # Trainer has drawn random numbers to get here, and on some versions others than it had without a break.
        if self.begin_epoch is not None:
            self.begin_epoch(kwargs["train_dataloader"])
            self.begin_epoch = None


def written_state(trainer: Trainer) -> str:
    """How far Trainer is, as its checkpoints have it."""
    file = Path(trainer.args.output_dir, TRAINER_STATE_NAME)
    trainer.state.save_to_json(str(file))
    return file.read_text(encoding="utf-8")


def read_state(
    trainer: Trainer, state: str, *, load: Callable[[Any, Any], None], begin_epoch: Callable[[DataLoader[Any]], None]
) -> Resumed:
    """A checkpoint of Trainer's with the model's weights and ``state``; see :class:`Resumed` for the rest."""
    folder = Path(trainer.args.output_dir, "resumed")
    trainer.model.save_pretrained(folder)
    (folder / TRAINER_STATE_NAME).write_text(state, encoding="utf-8")
    return Resumed(str(folder), load, begin_epoch)


def train(
    trainer: Trainer,
    progress_bar: tqdm[Any],
    *,
    updates: int | None = None,
    after_epoch: Callable[[DataLoader[Any]], None] = lambda loader: None,
    resumed: Resumed | None = None,
) -> None:
    """``trainer.train()``, which can stop after ``updates`` updates, and go on where another was killed."""
    callbacks = [AfterEachUpdate(progress_bar, updates, after_epoch), *filter(None, [resumed])]
    for callback in callbacks:
        trainer.add_callback(callback)
    try:
        trainer.train(resume_from_checkpoint=None if resumed is None else resumed.folder)
    finally:
        for callback in callbacks:
            trainer.remove_callback(callback)


def epoch_metrics(log_history: Sequence[dict[str, Any]], names: Sequence[str]) -> list[dict[str, float]]:
    """The metrics that Trainer logged after each epoch."""
    return [{name: entry[f"eval_{name}"] for name in names} for entry in log_history if f"eval_{names[0]}" in entry]
