from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from weakref import WeakSet, ref

import torch
from torch import nn
from torch.optim import Optimizer

from harness.torch_objects import held_by, raw_optimizer, real, spread_over
from harness.watch.check import Check
from harness.watch.events import Load, Step, StepBegins, TrainerMade
from harness.watch.facts.datasets import base, is_table
from harness.watch.monitor import Monitor

MOST_VALUES = 16
"""Values of a few matrices by which the weights that a training left are known again: any write to a matrix shows in
them, but for one that leaves its beginning as it is."""


@dataclass
class Training:
    """What one Trainer trained on what; the Trainer and its data may be gone."""

    trainer: ref[Any]
    kinds: tuple[type, type]
    """Of the Trainer, and of its collator."""
    held: list[ref[torch.Tensor]]
    dataset: ref[Any]
    rows: tuple[int, frozenset[int] | None]
    """As :func:`harness.watch.facts.datasets.base` has them."""
    lr: float
    updates: int = 0
    left: tuple[torch.Tensor, ...] = ()
    """The beginnings of a few matrices after the latest update."""


class AlreadyTrained(Check):
    """A second Trainer trains the model that another Trainer has trained already, on the same rows again.

    ## Why is this a bug?
    A Trainer takes the model as it is. One that another Trainer has trained is trained further: what was meant as a new
    run with other arguments contains the first run's updates, has seen every row more often than its epochs say, and
    ends in results that nobody can reproduce from the checkpoint. Trials with different learning rates that share one
    model are not comparable: each begins where the last one ended.

    ## What to do
    Call from_pretrained again before each Trainer, or give Trainer model_init, which makes a new model each time.

    ## When it is right
    A second stage on the same rows may be intended, with another schedule or other regularisation: ignore the finding
    there. A stage that is clearly intended is not reported: other rows (a curriculum, another task, the next round),
    another kind of Trainer or collator (supervised tuning and then preferences), other trainable parameters (the head
    first, and then all), a lower learning rate than before, weights that were loaded, reset or pruned in between, a
    resumed run, or the same Trainer's `train()` called again.

    ## References
    - https://huggingface.co/docs/transformers/main_classes/trainer (model_init)
    """

    severity = "warning"
    needs = "second Trainer"

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.made: WeakSet[Any] = WeakSet()
        """Trainers that have not trained yet."""
        self.where: dict[int, str | None] = {}
        """By id, where each of them was made."""
        self.before: Training | None = None
        """The latest training of a Trainer."""
        self.now: tuple[ref[Optimizer], Training] | None = None
        """The training at hand, with its optimizer."""

    def on_trainer_made(self, event: TrainerMade) -> None:
        self.made.add(event.trainer)
        self.where[id(event.trainer)] = event.where

    def on_load(self, event: Load) -> None:
        if isinstance(event.into, nn.Module) and event.state:
            self.before = self.now = None  # what the weights are now is not what a training left

    def on_step_begins(self, event: StepBegins) -> None:
        if event.number > 1:
            return
        if self.now is not None:
            self.before, self.now = self.now[1], None
        trainer = next((each for each in self.made if raw_optimizer(each.optimizer) is event.optimizer), None)
        if trainer is None or trainer.model is None or _is_resumed(event.optimizer):
            return
        training = _training(trainer, event.optimizer)
        if training is None:
            return
        self.now = ref(event.optimizer), training
        before = self.before
        if before is None or before.trainer() is trainer:
            return
        self.looked = True
        if _goes_on(before, training) and before.left and _all_equal(before.left, _beginnings(trainer.model)):
            self.found(
                expected="a model that no other Trainer has trained on these rows",
                observed=f"the model of another Trainer, with the weights that its {before.updates} updates left",
                where=self.where.get(id(trainer)),
                update=event.update,
            )

    def on_step(self, event: Step) -> None:
        if self.now is None or self.now[0]() is not event.optimizer:
            return
        training = self.now[1]
        trainer = training.trainer()
        if trainer is not None:
            training.updates, training.left = event.number, _beginnings(trainer.model)


def _training(trainer: Any, optimizer: Optimizer) -> Training | None:
    """None where its data cannot be known again."""
    dataset = trainer.train_dataset
    kept = dataset._data.table if is_table(dataset) else dataset
    try:
        alive = ref(kept)
    except TypeError:  # a plain list
        return None
    lr = max((float(group.get("initial_lr", group["lr"])) for group in optimizer.param_groups), default=0.0)
    return Training(
        ref(trainer),
        (type(trainer), type(trainer.data_collator)),
        [ref(p) for p in held_by(optimizer)],
        alive,
        base(dataset),
        lr,
    )


def _goes_on(before: Training, now: Training) -> bool:
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
