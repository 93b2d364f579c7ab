"""Mutants of what Accelerate and Trainer add: one silent bug for each check, and a clean twin.

Those of several processes are run in two.
"""

from __future__ import annotations

import copy
import functools
from collections import namedtuple
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState, GradientState
from accelerate.utils import patch_environment
from torch.optim import AdamW
from torch.utils.data import DataLoader
from transformers import EvalPrediction, Trainer, TrainingArguments

from harness.compat import evaluation_strategy, processing_class, split_batches
from harness.documented_run.loops import accelerated
from harness.documented_run.loops.adamw import TransformersAdamW
from harness.documented_run.loops.trainer import quiet_trainer
from harness.documented_run.recipe import Recipe
from harness.documented_run.stages import equivalence, evaluate, prepare, schedule, train, trainer
from harness.documented_run.stages.chain import Run
from harness.documented_run.stages.replays import replays, twins
from harness.documented_run.stages.replays.results import Replays
from tests.mutants.mutants import _reported, documented_evaluation, evaluated, looped, mutant


def under_accelerate(recipe: Recipe) -> Recipe:
    return recipe.with_(loop="accelerate")


def in_two_processes(recipe: Recipe) -> Recipe:
    return recipe.with_(loop="accelerate", processes=2)


def split_in_two(recipe: Recipe) -> Recipe:
    return recipe.with_(loop="accelerate", processes=2, split_batches=True)


def with_trainer(recipe: Recipe) -> Recipe:
    return recipe.with_(loop="trainer")


ACCELERATE = {"recipe": under_accelerate, "clean_recipe": under_accelerate}
TWO = {"recipe": in_two_processes, "clean_recipe": in_two_processes, "processes": 2}
SPLIT = {"recipe": split_in_two, "clean_recipe": split_in_two, "processes": 2}
TRAINER = {"recipe": with_trainer, "clean_recipe": with_trainer}


def _crashes(run: Run) -> None:
    raise RuntimeError("a library changed")


mutant("prepare::completes", **ACCELERATE)(_crashes)
mutant("trainer::completes", **TRAINER)(_crashes)


# ------------------------------------------------------------------------------------------------------------- prepare


def _prepares_model_and_optimizer_first(run: Run) -> None:
    """Another order, kept on both sides."""
    run.accelerator = Accelerator(**split_batches(run.recipe.split_batches))
    run.prepared_model, run.optimizer, run.train_dl, run.eval_dl = run.accelerator.prepare(
        run.model, run.optimizer, run.train_dataloader, run.eval_dataloader
    )
    run.device = run.accelerator.device


@mutant("prepare::as-many-processes-as-asked", recipe=in_two_processes, clean_recipe=under_accelerate)
def starts_one_of_two(run: Run) -> None:
    prepare.prepare(run)


def launched_with(**environment: str) -> Any:
    """The documented step in the environment that accelerate launch makes of a configuration."""

    def step(run: Run) -> None:
        with accelerated.separate_state(), patch_environment(**environment):
            prepare.prepare(run)
            kept = [dict(state) for state in (AcceleratorState._shared_state, GradientState._shared_state)]
        run.accelerator.state.__dict__ = kept[0]
        run.accelerator.gradient_state.__dict__ = kept[1]

    step.__name__ = "_".join(environment)
    return step


for _environment in ({"accelerate_mixed_precision": "bf16"}, {"accelerate_gradient_accumulation_steps": "4"}):
    mutant("prepare::computes-as-the-recipe-says", clean=launched_with(accelerate_mixed_precision="no"), **ACCELERATE)(
        launched_with(**_environment)
    )


@mutant("prepare::wraps-what-it-was-given", clean=_prepares_model_and_optimizer_first, **ACCELERATE)
def unpacks_in_another_order(run: Run) -> None:
    prepare.prepare(run)
    run.train_dl, run.eval_dl = run.eval_dl, run.train_dl


@mutant("prepare::wraps-what-it-was-given", **ACCELERATE)
def keeps_the_bare_optimizer(run: Run) -> None:
    bare = run.optimizer
    prepare.prepare(run)
    run.optimizer = bare


@mutant("prepare::keeps-the-optimizers-parameters", clean=_prepares_model_and_optimizer_first, **ACCELERATE)
def prepares_another_optimizer(run: Run) -> None:
    run.optimizer = AdamW(copy.deepcopy(run.model).parameters(), lr=run.recipe.lr)
    prepare.prepare(run)


@mutant("prepare::model-is-on-the-accelerators-device", clean=_prepares_model_and_optimizer_first, **ACCELERATE)
def leaves_the_head_elsewhere(run: Run) -> None:
    prepare.prepare(run)
    run.model.classifier.to("meta")


@mutant("prepare::batches-arrive-on-the-device", clean=_prepares_model_and_optimizer_first, **ACCELERATE)
def batches_stay_elsewhere(run: Run) -> None:
    prepare.prepare(run)
    collate = run.train_dataloader.collate_fn
    run.train_dl = DataLoader(
        run.train_dataloader.dataset,
        batch_size=run.recipe.batch_size,
        collate_fn=lambda rows: {name: values.to("meta") for name, values in collate(rows).items()},
    )


@mutant("prepare::an-epoch-has-as-many-batches-as-it-takes", **TWO)
def every_process_goes_through_all_rows(run: Run) -> None:
    prepare.prepare(run)
    run.train_dl = run.train_dataloader


@mutant("prepare::an-epoch-has-as-many-batches-as-it-takes", **SPLIT)
def forgets_to_split(run: Run) -> None:
    recipe, run.recipe = run.recipe, run.recipe.with_(split_batches=False)
    prepare.prepare(run)
    run.recipe = recipe


def _backward(run: Run, backward: Callable[[torch.Tensor], Any]) -> None:
    prepare.prepare(run)
    run.accelerator.backward = backward


def _divides_by_itself(run: Run) -> None:
    _backward(run, lambda loss: (loss / run.accelerator.gradient_accumulation_steps).backward())


_SAME, _SCALED = "prepare::backward-gives-the-same-gradients", "prepare::backward-divides-by-the-micro-batches"


@mutant(_SAME, clean=_divides_by_itself, **ACCELERATE)
def divides_by_micro_batches_that_are_not_there(run: Run) -> None:
    prepare.prepare(run)
    run.accelerator.gradient_accumulation_steps = 4


@mutant(_SAME, clean=_divides_by_itself, **ACCELERATE)
def loses_the_heads_gradient(run: Run) -> None:
    def backward(loss: torch.Tensor) -> None:
        loss.backward()
        run.model.classifier.weight.grad = None

    _backward(run, backward)


@mutant(_SCALED, clean=_divides_by_itself, **ACCELERATE)
def divides_by_nothing(run: Run) -> None:
    _backward(run, lambda loss: loss.backward())


def documented_lr(recipe: Recipe) -> Recipe:
    return recipe.with_(loop="accelerate", lr=3e-5)


@mutant("prepare::documented-learning-rate", recipe=documented_lr, clean_recipe=documented_lr)
def takes_another_learning_rate(run: Run) -> None:
    run.optimizer = AdamW(run.model.parameters(), lr=5e-5)
    prepare.prepare(run)


# ------------------------------------------------------------------------------------------------------------ schedule


def _prepares_a_schedule_of_all_processes_steps(run: Run) -> None:
    """A prepared scheduler is stepped once for each process, so it is planned for as many steps."""
    _prepares_its_schedule(run, steps_per_update=run.recipe.processes)


def _prepares_its_schedule(run: Run, *, steps_per_update: int = 1) -> None:
    schedule.schedule(run)
    updates, run.num_training_steps = run.num_training_steps, run.num_training_steps * steps_per_update
    run.lr_scheduler = schedule.scheduler(run, run.num_training_steps)
    run.num_training_steps = updates
    run.lr_scheduler = run.accelerator.prepare(run.lr_scheduler)


@mutant("schedule::decays-linearly", clean=_prepares_a_schedule_of_all_processes_steps, **TWO)
def steps_twice_an_update(run: Run) -> None:
    _prepares_its_schedule(run)


@mutant("schedule::decays-linearly", clean=_prepares_its_schedule, **SPLIT)
def plans_too_many_steps_for_split_batches(run: Run) -> None:
    _prepares_a_schedule_of_all_processes_steps(run)


@mutant("schedule::ends-at-zero", clean=_prepares_a_schedule_of_all_processes_steps, **TWO)
def plans_with_the_length_before_prepare(run: Run) -> None:
    schedule.schedule(run)
    run.lr_scheduler = schedule.scheduler(run, run.recipe.epochs * len(run.train_dataloader))


@mutant("schedule::updates-planned", **TWO)
def counts_the_batches_of_all_processes(run: Run) -> None:
    schedule.schedule(run)
    run.num_training_steps = run.recipe.epochs * len(run.train_dataloader)


# ----------------------------------------------------------------------------------------------------------- optimizer


class _WithoutBiasCorrection(AdamW):
    """AdamW with the moments as they are."""

    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for parameter in group["params"]:
                if parameter.grad is None:
                    continue
                state = self.state[parameter]
                first = state.get("first", torch.zeros_like(parameter)) * beta1 + (1 - beta1) * parameter.grad
                second = state.get("second", torch.zeros_like(parameter)) * beta2 + (1 - beta2) * parameter.grad**2
                state["first"], state["second"] = first, second
                with torch.no_grad():
                    parameter.mul_(1 - group["lr"] * group["weight_decay"])
                    parameter.addcdiv_(first, second.sqrt() + group["eps"], value=-group["lr"])


class _DecayInTheGradient(AdamW):
    """Adam's L2 penalty under AdamW's name."""

    def step(self, closure: Any = None) -> Any:
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    parameter.grad.add_(parameter.detach(), alpha=group["weight_decay"])
        decays = [group["weight_decay"] for group in self.param_groups]
        for group in self.param_groups:
            group["weight_decay"] = 0.0
        try:
            return super().step(closure)
        finally:
            for group, decay in zip(self.param_groups, decays, strict=True):
                group["weight_decay"] = decay


def _fused(run: Run) -> None:
    run.optimizer = AdamW(run.model.parameters(), lr=run.recipe.lr, fused=True)


@mutant("optimizer::updates-as-adamw", clean=_fused)
def corrects_no_bias(run: Run) -> None:
    run.optimizer = _WithoutBiasCorrection(run.model.parameters(), lr=run.recipe.lr)


@mutant("optimizer::updates-as-adamw", clean=_fused)
def decays_through_the_gradient(run: Run) -> None:
    run.optimizer = _DecayInTheGradient(run.model.parameters(), lr=run.recipe.lr)


@mutant("optimizer::updates-as-adamw")
def decays_after_the_update(run: Run) -> None:
    """The documents' own AdamW: not what torch's does."""
    run.optimizer = TransformersAdamW(run.model.parameters(), lr=run.recipe.lr)


# --------------------------------------------------------------------------------------------------------- equivalence


_replayed: dict[Recipe, Replays] = {}


def _replays(run: Run) -> None:
    """The documented step; every mutant starts from the same state, so it is done once for all of them."""
    if run.recipe not in _replayed:
        equivalence.STAGE.do(run)
        _replayed[run.recipe] = copy.deepcopy(run.replays)
    run.replays = copy.deepcopy(_replayed[run.recipe])


_ACCELERATE, _TWO, _SPLIT, _TRAINER = ({"clean": _replays, **each} for each in (ACCELERATE, TWO, SPLIT, TRAINER))

mutant("equivalence::completes", **_ACCELERATE)(_crashes)


@mutant("equivalence::accelerate-trains-as-the-plain-loop", **_ACCELERATE)
def trains_with_another_learning_rate(run: Run) -> None:
    _replays(run)
    with accelerated.separate_state():
        run.replays.trainings["accelerate"] = replays.replayed(
            twins.twin(run, twins.planned(run), lr=run.recipe.lr * (1 + 1e-6))
        )


@mutant("equivalence::accelerate-trains-as-the-plain-loop", **_TWO)
def calls_the_bare_model_in_the_replay(run: Run) -> None:
    _replays(run)
    with accelerated.separate_state():
        updates = len(run.replays.trainings["plain"].losses)
        twin = twins.twin(run, updates, twins.to_float64_without_dropout, shuffle=False)
        twin.prepared_model = twin.model
        run.replays.trainings["accelerate"] = replays.replayed(twin)


mutant("equivalence::accelerate-trains-as-the-plain-loop", **_SPLIT)(calls_the_bare_model_in_the_replay)


class _Forgetful(replays.Placed):
    """Puts on the device what comes to mind."""

    def __iter__(self) -> Iterator[dict[str, torch.Tensor]]:
        for batch in self.loader:
            yield {k: batch[k].to(self.device) for k in ("input_ids", "labels")}


@mutant("equivalence::placing-by-hand-is-the-same-training", **_ACCELERATE)
def forgets_the_attention_mask(run: Run) -> None:
    _replays(run)
    with accelerated.separate_state():
        run.replays.trainings["placed by hand"] = replays.placed_by_hand(run, _Forgetful)


def accumulating(**options: Any) -> Any:
    """The documented step with another way to accumulate in the micro-batches' replay."""

    def step(run: Run) -> None:
        _replays(run)
        run.replays.trainings["micro-batches"] = replays.micro_batches(run, partial(_accumulates, **options))

    step.__name__ = "_".join(options) or "accumulates"
    return step


def _accumulates(
    accelerator: Accelerator,
    model: Any,
    train_dl: Any,
    optimizer: Any,
    *,
    max_norm: float,
    means_of_micro_batches: bool = False,
    clips_each_micro_batch: bool = False,
    forgets_accumulate: bool = False,
    loses_the_last_window: bool = False,
) -> None:
    micro, left = accelerator.gradient_accumulation_steps, train_dl.total_dataset_length
    for number, batch in enumerate(train_dl):
        if number % micro == 0:
            window = min(micro * train_dl.total_batch_size, left)
            if loses_the_last_window and window < micro * train_dl.total_batch_size:
                return
        rows = len(batch["labels"])
        weight = 1.0 if means_of_micro_batches else micro * rows / window
        left -= rows
        with accelerator.accumulate(model):
            loss = model(**batch).loss * weight
            if forgets_accumulate:
                loss = loss * micro
            accelerator.backward(loss)
            if clips_each_micro_batch or accelerator.sync_gradients:
                accelerator.clip_grad_norm_(model.parameters(), max_norm)
            optimizer.step()
            optimizer.zero_grad()


_in_micro_batches = accumulating()
_ACCUMULATION = "equivalence::accumulated-micro-batches-are-one-batch"
for _bug in (
    "means_of_micro_batches", "clips_each_micro_batch", "forgets_accumulate", "loses_the_last_window"
):  # fmt: skip
    mutant(_ACCUMULATION, clean=_in_micro_batches, **ACCELERATE)(accumulating(**{_bug: True}))


@mutant("equivalence::bf16-stays-near-float32", **_ACCELERATE)
def autocast_does_not_arrive(run: Run) -> None:
    _replays(run)
    run.replays.trainings["bf16"] = replays.replayed_in(run, "no")


def _in_bf16_with(run: Run, change: Any) -> None:
    _replays(run)
    with accelerated.separate_state():
        Accelerator(mixed_precision="bf16")
        twin = twins.twin(run, len(run.replays.trainings["float32"].losses), change)
        run.replays.trainings["bf16"] = replays.replayed(twin)


@mutant("equivalence::bf16-stays-near-float32", **_ACCELERATE)
def casts_the_weights(run: Run) -> None:
    def casts(model: Any) -> None:
        model.bfloat16()
        twins.without_dropout(model)

    _in_bf16_with(run, casts)


@mutant("equivalence::bf16-stays-near-float32", **_ACCELERATE)
def scales_the_loss(run: Run) -> None:
    def scales(model: Any, args: Any, outputs: Any) -> Any:
        outputs.loss = 1.5 * outputs.loss
        return outputs

    def change(model: Any) -> None:
        model.register_forward_hook(scales)
        twins.without_dropout(model)

    _in_bf16_with(run, change)


def trained_with(**arguments: Any) -> Any:
    """The documented step, with a difference left on that the list does not have."""

    def step(run: Run) -> None:
        _replays(run)
        run.replays.trainings["trainer"] = replays.replayed(twins.trainer_twin(run, **arguments))

    step.__name__ = "_".join(arguments)
    return step


for _left in ({"label_smoothing_factor": 0.1}, {"warmup_steps": 3}, {"max_grad_norm": 0.2}):
    mutant("equivalence::trainer-without-its-differences-is-the-plain-loop", **_TRAINER)(trained_with(**_left))


def _with_trainers_update(run: Run, prepared: Any, replay: str = "micro-batches") -> None:
    """The documented step with a Trainer in the micro-batches' replay that is changed before it trains."""
    _replays(run)
    run.replays.trainings[replay] = replays.trainers_update(run, 4, prepared)


def _divides_by_the_micro_batches(run: Run) -> None:
    """What Trainer does for a model that does not count the items of a batch itself, as BERT's does not."""
    _with_trainers_update(run, replays.takes_no_other_keywords)


_ACCUMULATING_TRAINER = {"clean": _divides_by_the_micro_batches, **TRAINER}


def _sums_the_micro_batches(trainer: Trainer) -> None:
    def multiplies(*_: Any) -> None:
        for parameter in trainer.model.parameters():
            parameter.grad.mul_(4)

    trainer.optimizer.register_step_pre_hook(multiplies)


@mutant("equivalence::trainer-accumulates-as-one-batch", **_ACCUMULATING_TRAINER)
def sums_the_micro_batches(run: Run) -> None:
    _with_trainers_update(run, _sums_the_micro_batches)


@mutant("equivalence::trainer-accumulates-as-one-batch", **_ACCUMULATING_TRAINER)
def updates_after_two_micro_batches(run: Run) -> None:
    _with_trainers_update(run, lambda trainer: setattr(trainer.args, "gradient_accumulation_steps", 2))


@mutant("equivalence::trainer-accumulates-other-models-as-one-batch", **_TRAINER)
def divides_twice(run: Run) -> None:
    def prepared(trainer: Trainer) -> None:
        replays.takes_no_other_keywords(trainer)
        trainer.accelerator.gradient_accumulation_steps = 4  # what 5.2.0 to 5.5.3 left there

    _with_trainers_update(run, prepared, "micro-batches of other models")


# --------------------------------------------------------------------------------------------------------------- train


@mutant("train::parameters-equal-on-all-ranks", **TWO)
@looped
def calls_the_bare_model(run: Run) -> None:
    run.prepared_model = run.model
    train.loop(run)


@mutant("train::each-row-once-an-epoch", **TWO)
@looped
def goes_through_the_bare_dataloader(run: Run) -> None:
    run.train_dl = run.train_dataloader
    train.loop(run)


@mutant("train::lr-follows-the-schedule", **TWO)
@looped
def prepares_the_schedule_late(run: Run) -> None:
    run.lr_scheduler = run.accelerator.prepare(run.lr_scheduler)
    train.loop(run)


def _trainer_with(run: Run, **arguments: Any) -> None:
    """The documented Trainer with some other arguments, ready to train."""
    for name, value in arguments.items():
        setattr(run.trainer.args, name, value)
    train.train(run)


@mutant("train::logs-the-loss-as-documented", **TRAINER)
def logs_every_five_updates(run: Run) -> None:
    run.trainer.state.logging_steps = 5
    _trainer_with(run, logging_steps=5)


@mutant("train::evaluates-after-every-epoch", **TRAINER)
def evaluates_never(run: Run) -> None:
    _trainer_with(run, **evaluation_strategy("no"))


@mutant("train::evaluates-after-every-epoch", **TRAINER)
def evaluates_without_metrics(run: Run) -> None:
    run.trainer.compute_metrics = None
    train.train(run)


# ------------------------------------------------------------------------------------------------------------- trainer


def first_trainer(run: Run, *, arguments: dict[str, Any] | None = None, **others: Any) -> None:
    """The documented step with another first Trainer."""
    trainer.trainer(run)
    datasets = trainer.with_label(run)
    run.first_trainer = quiet_trainer(
        run.model,
        TrainingArguments(run.scratch.name, **(arguments or {})),
        **{
            "train_dataset": datasets["train"],
            "eval_dataset": datasets["validation"],
        }
        | processing_class(run.tokenizer)
        | others,
    )


def _states_the_defaults(run: Run) -> None:
    first_trainer(run, arguments={"learning_rate": 5e-5, "num_train_epochs": 3, "logging_steps": 500})


@mutant("trainer::defaults-are-as-documented", clean=_states_the_defaults, **TRAINER)
def logs_more_often(run: Run) -> None:
    first_trainer(run, arguments={"logging_steps": 10})


@mutant("trainer::arguments-are-the-recipes", clean=_states_the_defaults, **TRAINER)
def accumulates_unasked(run: Run) -> None:
    trainer.trainer(run)
    run.trainer.args.gradient_accumulation_steps = 2


def _gives_the_collator(run: Run) -> None:
    first_trainer(run, data_collator=run.data_collator)


@mutant("trainer::pads-dynamically-by-itself", clean=_gives_the_collator, **TRAINER)
def has_no_tokenizer(run: Run) -> None:
    first_trainer(run, **processing_class(None))


@mutant("trainer::does-the-postprocessing-by-itself", clean=_gives_the_collator, **TRAINER)
def loses_the_labels(run: Run) -> None:
    run.tokenized_datasets = copy.copy(run.tokenized_datasets)
    for name, rows in run.tokenized_datasets.items():
        run.tokenized_datasets[name] = rows.remove_columns("label")
    trainer.trainer(run)


@mutant("trainer::does-the-postprocessing-by-itself", clean=_gives_the_collator, **TRAINER)
def drops_the_last_batch(run: Run) -> None:
    trainer.trainer(run)
    run.trainer.args.dataloader_drop_last = True
    run.train_dl = run.trainer.get_train_dataloader()


@mutant("trainer::no-metric-without-compute-metrics", clean=_gives_the_collator, **TRAINER)
def measures_unasked(run: Run) -> None:
    first_trainer(run, compute_metrics=lambda predictions: {"accuracy": 1.0})


def first_trainer_is(kind: type[Trainer], run: Run) -> None:
    """The documented step with a first Trainer of a class of its own."""
    first_trainer(run, kind=kind)


class _IsCalledOtherwise(Trainer):
    """A subclass that does what Trainer does."""


_OF_A_SUBCLASS = {"clean": partial(first_trainer_is, _IsCalledOtherwise), **TRAINER}


@mutant("trainer::keeps-checkpoints", clean=_states_the_defaults, **TRAINER)
def saves_nothing(run: Run) -> None:
    first_trainer(run, arguments={"save_strategy": "no"})


mutant("trainer::keeps-the-trained-model", clean=_states_the_defaults, **TRAINER)(saves_nothing)


class _SavesWhatItLoaded(Trainer):
    """Each checkpoint has the weights with which the training began."""

    def train(self, *args: Any, **kwargs: Any) -> Any:
        self.began = copy.deepcopy(self.model.state_dict())
        return super().train(*args, **kwargs)

    def save_model(self, output_dir: str | None = None, **kwargs: Any) -> None:
        trained = copy.deepcopy(self.model.state_dict())
        self.model.load_state_dict(self.began)
        super().save_model(output_dir, **kwargs)
        self.model.load_state_dict(trained)


@mutant("trainer::keeps-the-trained-model", **_OF_A_SUBCLASS)
def saves_what_it_loaded(run: Run) -> None:
    first_trainer_is(_SavesWhatItLoaded, run)


@mutant("trainer::evaluates-only-where-asked", clean=_states_the_defaults, **TRAINER)
def evaluates_each_epoch(run: Run) -> None:
    first_trainer(run, arguments=evaluation_strategy("epoch"))


class _EvaluatesUnasked(Trainer):
    def train(self, *args: Any, **kwargs: Any) -> Any:
        output = super().train(*args, **kwargs)
        self.evaluate()
        return output


@mutant("trainer::evaluates-only-where-asked", **_OF_A_SUBCLASS)
def evaluates_unasked(run: Run) -> None:
    first_trainer_is(_EvaluatesUnasked, run)


class _TakesStep(TrainingArguments):
    """Has another name for "steps"."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        name = next(iter(evaluation_strategy("no")))
        super().__init__(*args, **kwargs | ({name: "steps"} if kwargs.get(name) == "step" else {}))


class _AreCalledOtherwise(TrainingArguments):
    """A subclass that does what TrainingArguments does."""


def _with_arguments_of(kind: type[TrainingArguments], run: Run) -> None:
    trainer.trainer(run)
    run.first_trainer.args = kind(run.scratch.name)


@mutant(
    "trainer::takes-steps-and-epoch-for-strategies", clean=partial(_with_arguments_of, _AreCalledOtherwise), **TRAINER
)
def takes_step(run: Run) -> None:
    _with_arguments_of(_TakesStep, run)


def _states_adamw(run: Run) -> None:
    first_trainer(run, arguments={"optim": "adamw_torch"})


@mutant("trainer::optimizes-with-adamw", clean=_states_adamw, **TRAINER)
def optimizes_with_sgd(run: Run) -> None:
    first_trainer(run, arguments={"optim": "sgd"})


class _SavesTheModelAlone(Trainer):
    def _save_checkpoint(self, *args: Any, **kwargs: Any) -> None:
        self.save_model(f"{self.args.output_dir}/checkpoint-{self.state.global_step}")


@mutant("trainer::keeps-checkpoints", **_OF_A_SUBCLASS)
def saves_the_model_alone(run: Run) -> None:
    first_trainer_is(_SavesTheModelAlone, run)


class _ForgetsTheOptimizer(Trainer):
    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        pass


class _ForgetsTheRandomState(Trainer):
    def _load_rng_state(self, checkpoint: str | None) -> None:
        pass


class _ForgetsTheRows(Trainer):
    def train(self, *args: Any, **kwargs: Any) -> Any:
        self.args.ignore_data_skip = True
        return super().train(*args, **kwargs)


class _CannotRead(Trainer):
    def _load_rng_state(self, checkpoint: str | None) -> None:
        raise ValueError("cannot be read")


for _kind in (_ForgetsTheOptimizer, _ForgetsTheRandomState, _ForgetsTheRows, _CannotRead):
    mutant("trainer::resumes-from-a-checkpoint", **_OF_A_SUBCLASS)(
        functools.update_wrapper(partial(first_trainer_is, _kind), _kind, assigned=["__name__"], updated=[])
    )


class _EvaluatesAsItLogs(Trainer):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.args.eval_steps = self.args.logging_steps
        self.state.eval_steps = self.args.logging_steps  # which is asked from transformers 4.31 on


@mutant("trainer::evaluates-every-eval-steps", **_OF_A_SUBCLASS)
def evaluates_as_it_logs(run: Run) -> None:
    first_trainer_is(_EvaluatesAsItLogs, run)


class _TellsBatchesForRows(Trainer):
    def predict(self, *args: Any, **kwargs: Any) -> Any:
        output = super().predict(*args, **kwargs)
        output.metrics["test_samples_per_second"] = output.metrics["test_steps_per_second"]
        return output


@mutant("trainer::predict-tells-loss-and-times", clean=_gives_the_collator, **TRAINER)
def predicts_with_metrics(run: Run) -> None:
    measures_unasked(run)


@mutant("trainer::predict-tells-loss-and-times", **_OF_A_SUBCLASS)
def tells_batches_for_rows(run: Run) -> None:
    first_trainer_is(_TellsBatchesForRows, run)


class _GivesThemInAnotherOrder(Trainer):
    compute_metrics: Any

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        asked = self.compute_metrics
        if asked is not None:
            self.compute_metrics = lambda given: asked(EvalPrediction(given.label_ids, given.predictions))


@mutant("trainer::compute-metrics-takes-an-eval-prediction", **_OF_A_SUBCLASS)
def gives_labels_first(run: Run) -> None:
    first_trainer_is(_GivesThemInAnotherOrder, run)


def _measures_with(run: Run, compute_metrics: Any) -> None:
    trainer.trainer(run)
    run.trainer.compute_metrics = compute_metrics


def _accuracy_by_hand(run: Run) -> None:
    _measures_with(run, lambda given: {"accuracy": float((given.predictions.argmax(-1) == given.label_ids).mean())})


@mutant("trainer::compute-metrics-takes-an-eval-prediction", clean=_accuracy_by_hand, **TRAINER)
def tells_each_row(run: Run) -> None:
    _measures_with(run, lambda given: {"accuracy": given.predictions.argmax(-1) == given.label_ids})


@mutant("trainer::compute-metrics-takes-an-eval-prediction", clean=_accuracy_by_hand, **TRAINER)
def is_given_no_compute_metrics(run: Run) -> None:
    _measures_with(run, None)


def _trains_before(run: Run, model: Any) -> None:
    """The first Trainer makes two updates of a model, before the second is made."""
    trainer.trainer(run)
    with trainer.short_trainer(run, model=model, max_steps=2) as first:
        first.train()


def _trains_another_model_before(run: Run) -> None:
    _trains_before(run, copy.deepcopy(run.model))


@mutant("trainer::takes-a-new-model", clean=_trains_another_model_before, **TRAINER)
def takes_the_trained_model(run: Run) -> None:
    _trains_before(run, run.model)


class _StartsAnew(Trainer):
    def train(self, *args: Any, **kwargs: Any) -> Any:
        self.model.classifier.reset_parameters()
        return super().train(*args, **kwargs)


@mutant("trainer::takes-a-new-model", **_OF_A_SUBCLASS)
def starts_anew(run: Run) -> None:
    first_trainer_is(_StartsAnew, run)


# ------------------------------------------------------------------------------------------------------------ evaluate


def gathered_evaluation(run: Run, metric: Any, *, gather: Any) -> dict[str, float]:
    """The document's evaluation under Accelerate with another way to bring the ranks' rows together."""
    run.model.eval()
    for batch in run.eval_dl:
        with torch.no_grad():
            outputs = run.prepared_model(**batch)
        predictions, references = gather(run)((outputs.logits.argmax(dim=-1), batch["labels"]))
        metric.add_batch(predictions=predictions, references=references)
    scores: dict[str, float] = metric.compute()
    return scores


def _gathers_for_metrics(run: Run, metric: Any) -> dict[str, float]:
    return gathered_evaluation(run, metric, gather=lambda run: run.accelerator.gather_for_metrics)


@mutant("evaluate::adds-every-batch", clean=evaluated(_gathers_for_metrics), **TWO)
@evaluated
def gathers_the_repeated_rows_too(run: Run, metric: Any) -> dict[str, float]:
    return gathered_evaluation(run, metric, gather=lambda run: run.accelerator.gather)


@mutant("evaluate::adds-every-batch", clean=evaluated(_gathers_for_metrics), **TWO)
@evaluated
def gathers_nothing(run: Run, metric: Any) -> dict[str, float]:
    return gathered_evaluation(run, metric, gather=lambda run: lambda rows: rows)


@mutant("evaluate::metrics-are-those-of-one-process", clean=evaluated(_gathers_for_metrics), **TWO)
@evaluated
def averages_the_ranks_metrics(run: Run, metric: Any) -> dict[str, float]:
    scores = gathered_evaluation(run, metric, gather=lambda run: lambda rows: rows)
    mean = run.accelerator.reduce(torch.tensor([scores["accuracy"], scores["f1"]]), reduction="mean")
    return dict(zip(("accuracy", "f1"), mean.tolist(), strict=True))


@mutant("evaluate::sees-each-row-once-in-order", clean=evaluated(_gathers_for_metrics), **TWO)
@evaluated
def every_process_sees_all_rows(run: Run, metric: Any) -> dict[str, float]:
    return documented_evaluation(run, metric)


def _predicts_again(run: Run) -> None:
    """The same rows once more: nothing is random in eval mode."""
    evaluate.predict(run)
    run.predictions = run.trainer.predict(run.trainer.eval_dataset)


@mutant("evaluate::predict-gives-logits-and-labels", clean=_predicts_again, **TRAINER)
def predicts_the_test_set(run: Run) -> None:
    evaluate.predict(run)
    run.predictions = run.trainer.predict(run.trainer.eval_dataset.select(range(5)))


@mutant("evaluate::predict-gives-logits-and-labels", clean=_predicts_again, **TRAINER)
def predicts_without_metrics(run: Run) -> None:
    computes, run.trainer.compute_metrics = run.trainer.compute_metrics, None
    evaluate.predict(run)
    run.trainer.compute_metrics = computes


_Output = namedtuple("_Output", ("predictions", "metrics", "label_ids"))


@mutant("evaluate::predict-gives-three-fields", clean=_predicts_again, **TRAINER)
def gives_a_list(run: Run) -> None:
    evaluate.predict(run)
    given = run.predictions
    run.predictions = _Output(given.predictions, given.metrics, given.label_ids)


@mutant("evaluate::predictions-are-logits", clean=_predicts_again, **TRAINER)
def gives_probabilities(run: Run) -> None:
    evaluate.predict(run)
    exponentials = np.exp(run.predictions.predictions)
    probabilities = exponentials / exponentials.sum(axis=-1, keepdims=True)
    run.predictions = run.predictions._replace(predictions=probabilities)


def _bert_base_with_trainer(recipe: Recipe) -> Recipe:
    return Recipe(data=recipe.data, loop="trainer")


mutant(
    "evaluate::trainer-in-the-documented-ball-park",
    recipe=_bert_base_with_trainer,
    clean_recipe=_bert_base_with_trainer,
    clean=_reported(0.84, 0.89),
)(_reported(0.70, 0.81))
