"""Trainers in a row: whether one goes on with the weights that another has left."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from weakref import WeakSet, ref

import torch
from torch import nn
from torch.optim import Optimizer

from harness.torch_objects import held_by, raw_optimizer, real, spread_over
from harness.watch.events import Fact, Load, Step, StepBegins, TrainerMade
from harness.watch.facts.datasets import base, is_table
from harness.watch.recogniser import Recogniser

MOST_VALUES = 16
"""Values of a few matrices by which the weights that a training left are known again: any write to a matrix shows in
them, but for one that leaves its beginning as it is."""


class TrainerBegins(Fact):
    """A Trainer is about to make its first update, after another one trained. ``where`` is where it was made."""

    needs = "second Trainer"
    goes_on: bool
    """Whether it trains the tensors that the other has left, on the same rows, and nothing shows a later stage."""
    updates_before: int
    """Updates that the other made."""


@dataclass
class TrainersTraining:
    """What one Trainer trained on what; the Trainer and its data may be gone."""

    trainer: ref[Any]
    kinds: tuple[type, type]
    """Classes of the Trainer and of its collator."""
    held: list[ref[torch.Tensor]]
    dataset: ref[Any]
    rows: tuple[int, frozenset[int] | None]
    """Dataset and rows, as :func:`harness.watch.facts.datasets.base` has them."""
    lr: float
    updates: int = 0
    left: tuple[torch.Tensor, ...] = ()
    """The beginnings of a few matrices after the latest update."""


class TrainersInARow(Recogniser):
    makes = (TrainerBegins,)

    def begin(self) -> None:
        self._made: WeakSet[Any] = WeakSet()
        """Trainers that have not trained yet."""
        self._where: dict[int, str | None] = {}
        """Id of each of these Trainers to where it was made."""
        self._before: TrainersTraining | None = None
        """The latest training of a Trainer."""
        self._now: tuple[ref[Optimizer], TrainersTraining] | None = None
        """The training at hand, with its optimizer."""

    def on_trainer_made(self, event: TrainerMade) -> None:
        self._made.add(event.trainer)
        self._where[id(event.trainer)] = event.where

    def on_load(self, event: Load) -> None:
        if isinstance(event.into, nn.Module) and event.state:
            self._before = self._now = None  # what the weights are now is not what a training left

    def on_step_begins(self, event: StepBegins) -> None:
        if event.number > 1:
            return
        if self._now is not None:
            self._before, self._now = self._now[1], None
        trainer = next((each for each in self._made if raw_optimizer(each.optimizer) is event.optimizer), None)
        if trainer is None or trainer.model is None or _is_resumed(event.optimizer):
            return
        training = _training(trainer, event.optimizer)
        if training is None:
            return
        self._now = ref(event.optimizer), training
        before = self._before
        if before is None or before.trainer() is trainer:
            return
        goes_on = _goes_on(before, training) and before.left and _all_equal(before.left, _beginnings(trainer.model))
        where = self._where.get(id(trainer))
        self.tell(TrainerBegins(goes_on=bool(goes_on), updates_before=before.updates, where=where))

    def on_step(self, event: Step) -> None:
        if self._now is None or self._now[0]() is not event.optimizer:
            return
        training = self._now[1]
        trainer = training.trainer()
        if trainer is not None:
            training.updates, training.left = event.number, _beginnings(trainer.model)


def _training(trainer: Any, optimizer: Optimizer) -> TrainersTraining | None:
    """None where its data cannot be known again."""
    dataset = trainer.train_dataset
    kept = dataset._data.table if is_table(dataset) else dataset
    try:
        alive = ref(kept)
    except TypeError:  # a plain list
        return None
    lr = max((float(group.get("initial_lr", group["lr"])) for group in optimizer.param_groups), default=0.0)
    return TrainersTraining(
        ref(trainer),
        (type(trainer), type(trainer.data_collator)),
        [ref(p) for p in held_by(optimizer)],
        alive,
        base(dataset),
        lr,
    )


def _goes_on(before: TrainersTraining, now: TrainersTraining) -> bool:
    """Whether a training is of the tensors and rows of the one before, and not visibly a later stage of it."""
    return (
        before.kinds == now.kinds
        and before.dataset() is now.dataset()
        and before.dataset() is not None
        and before.rows == now.rows
        and now.lr >= before.lr
        and len(before.held) == len(now.held)
        and all(mine() is its() for mine, its in zip(before.held, now.held, strict=True))
    )


def _is_resumed(optimizer: Optimizer) -> bool:
    """Whether a state was loaded into an optimizer that has made no step."""
    return any(state for state in optimizer.state.values())


def _beginnings(model: nn.Module) -> tuple[torch.Tensor, ...]:
    trainable = [p for p in model.parameters() if p.requires_grad]
    return tuple(real(p).flatten()[:MOST_VALUES].clone() for p in (*spread_over(model), *trainable[-1:]))


def _all_equal(ones: tuple[torch.Tensor, ...], others: tuple[torch.Tensor, ...]) -> bool:
    return len(ones) == len(others) and all(
        torch.equal(one.to(other), other) for one, other in zip(ones, others, strict=True)
    )
