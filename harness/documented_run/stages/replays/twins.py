"""Twins: runs and Trainers that start where a run is, on copies, changed in what is named."""

from __future__ import annotations

import copy
from collections.abc import Callable
from itertools import count
from typing import Any

import torch
from torch.optim import AdamW, Optimizer
from torch.utils.data import DataLoader
from transformers import PreTrainedModel, set_seed
from transformers.trainer_utils import IntervalStrategy

from harness.compat import evaluation_strategy, processing_class
from harness.documented_run.loops.trainer import quiet_trainer
from harness.documented_run.stages import batches, optimizer, prepare, schedule, train
from harness.documented_run.stages.chain import Run
from harness.torch_objects import unchanged_random_state

REPLAYED = 20
"""Updates in a replay."""


def planned(run: Run) -> int:
    """The updates of a replay."""
    return min(REPLAYED, train.planned(run))


def without_dropout(model: PreTrainedModel) -> None:
    """No dropout of any kind while it trains: it stays in eval mode, whatever the loop asks for."""
    model.eval()
    model.train = _stays_as_it_is


def _stays_as_it_is(mode: bool = True) -> None:
    pass


def has_float64(run: Run) -> bool:
    return run.device.type != "mps"


def comparable(run: Run) -> Callable[[PreTrainedModel], None]:
    """What a model needs for its updates to be comparable: nothing on one CPU, where they are the same bit for bit.

    Several processes, and a GPU, sum in another order each time.
    """
    alone = run.recipe.processes == 1 and run.device.type == "cpu"
    return (lambda model: None) if alone or not has_float64(run) else to_float64_without_dropout


def to_float64_without_dropout(model: PreTrainedModel) -> None:
    """Without dropout and in float64: two orders of summation then differ by what :func:`rounding` says."""
    model.double()
    without_dropout(model)


def copied(run: Run, change: Callable[[PreTrainedModel], None] = lambda model: None) -> PreTrainedModel:
    """The run's model as it is now, for a replay."""
    model = copy.deepcopy(run.model)
    vars(model).pop("_is_accelerate_prepared", None)  # the copy is not
    change(model)
    return model


def twin(run: Run, updates: int, change: Callable[[PreTrainedModel], None] = lambda model: None, **recipe: Any) -> Run:
    """A run that starts where this one is, ready for its first update, with recipe and model changed."""
    if recipe.get("loop") == "plain":
        recipe |= {"processes": 1, "split_batches": False}
    other = Run(run.recipe.with_(**recipe), updates)
    other.model_datasets, other.data_collator, other.device = run.model_datasets, run.data_collator, run.device
    other.model = other.prepared_model = copied(run, change)
    for stage in (batches.STAGE, optimizer.STAGE, prepare.STAGE, schedule.STAGE):
        stage.do(other)
    return other


def plain_twin(run: Run) -> Run:
    return twin(run, planned(run), comparable(run), loop="plain")


def fixed_order(run: Run) -> DataLoader[Any]:
    """The training rows in the order that the recipe's seed gives the plain loop; every replay and epoch has it."""
    rows, size = run.model_datasets["train"], run.recipe.batch_size
    numbers: Any = range(len(rows))
    with unchanged_random_state():
        set_seed(run.recipe.seed)
        order = [row for batch in DataLoader(numbers, shuffle=run.recipe.shuffle, batch_size=size) for row in batch]
    return DataLoader(rows, batch_size=size, sampler=torch.stack(order).tolist(), collate_fn=run.data_collator)


def in_fixed_order(other: Run) -> Run:
    """The twin with its rows in the fixed order, and dropout drawn anew before each forward: the same in all twins.

    Trainer and the plain loop draw other random numbers between two forwards, so dropout could not be compared.
    """
    other.train_dl = fixed_order(other)
    reseed_before_each_forward(other.model, other.recipe.seed)
    return other


def reseed_before_each_forward(model: torch.nn.Module, seed: int) -> None:
    numbers = count(seed)

    def seeds(*_: Any) -> None:
        torch.manual_seed(next(numbers))

    model.register_forward_pre_hook(seeds)


def trainer_twin(
    run: Run,
    *,
    own_order: bool = False,
    adamw: Callable[[PreTrainedModel], Optimizer] | None = None,
    change: Callable[[PreTrainedModel], None] | None = None,
    **arguments: Any,
) -> Run:
    """A Trainer that starts where the run is, each of its differences to the loop by hand off unless it is named."""
    other = Run(run.recipe, planned(run))
    other.model = other.prepared_model = copied(run, change or comparable(run))
    reseed_before_each_forward(other.model, run.recipe.seed)
    training_args = copy.copy(run.trainer.args)  # whatever else is set there is seen
    for name, value in (evaluation_strategy(IntervalStrategy.NO) | {"max_grad_norm": 0.0} | arguments).items():
        setattr(training_args, name, value)
    other.trainer = quiet_trainer(
        other.model,
        training_args,
        train_dataset=run.trainer.train_dataset,
        data_collator=run.data_collator,
        **processing_class(run.tokenizer),
        optimizers=((adamw or default_adamw(run))(other.model), None),
    )
    other.optimizer = other.trainer.create_optimizer()
    if not own_order:
        other.trainer.get_train_dataloader = lambda: fixed_order(run)
    return other


def default_adamw(run: Run, **values: Any) -> Callable[[PreTrainedModel], Optimizer]:
    """The document's ``AdamW(model.parameters(), lr=...)``, with some other values."""
    return lambda model: AdamW(model.parameters(), lr=run.recipe.lr, **values)
