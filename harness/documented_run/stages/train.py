"""Train: the loop over all updates (document "The training loop")."""

from __future__ import annotations

import math
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import cycle, islice, pairwise, zip_longest
from typing import Any

import torch
from torch.utils.data import DataLoader
from tqdm.auto import tqdm

from harness import launch
from harness.documented_run.claims import claim
from harness.documented_run.loops import accelerated, plain, trainer
from harness.documented_run.loops.trainer import Resumed
from harness.documented_run.metrics import load_metric, scores_of
from harness.documented_run.stages.batches import ENOUGH_ROWS
from harness.documented_run.stages.chain import RECIPE_RESPECTED, Run, Stage
from harness.documented_run.stages.schedule import rehearsed_lrs
from harness.documented_run.stages.trace import Event, Trace, TracedBackward, TracedForward, row_key
from harness.findings import Finding, NotApplicable, expect
from harness.torch_objects import unchanged_random_state

STAGE = Stage("train")

LAYERDROP = ("layerdrop", "encoder_layerdrop", "decoder_layerdrop")
UNUSED = ("mask_emb",)
"""Parameters that some architectures carry for their pretraining only (XLNet)."""


@STAGE.step
def train(run: Run) -> None:
    run.replays.trainings.clear()  # several times the model's size
    run.progress_bar = progress_bar(run.num_training_steps)
    run.planned_lrs = rehearsed_lrs(run)
    metric = load_metric(run.recipe.metrics)

    def after_epoch() -> None:
        evaluate_between_epochs(run, metric)
        keep(run, run.train_dl)

    with run.progress_bar, traced(run) as run.training:
        resumed = None if run.keeper is None else run.keeper.go_on(run)
        began = time.perf_counter()
        with ended_where_not_finite(run):
            loop(run, after_epoch=after_epoch, resumed=resumed)
        run.training_seconds = time.perf_counter() - began


@STAGE.step_of("trainer")
def train_with_trainer(run: Run) -> None:
    train(run)
    run.epochs = trainer.epoch_metrics(run.trainer.state.log_history, scores_of(run.recipe))


def loop(run: Run, *, after_epoch: Callable[[], None] = lambda: None, resumed: Resumed | None = None) -> None:
    """The documented loop that the recipe names, from where the run is: at its beginning, or after a whole epoch."""
    LOOPS[run.recipe.loop].train(run, after_epoch, resumed)


def evaluation_loop(run: Run, metric: Any) -> dict[str, float]:
    """The documented evaluation loop that goes with the recipe's."""
    return LOOPS[run.recipe.loop].evaluate(run, metric)


def _plain(run: Run, after_epoch: Callable[[], None], _: Resumed | None) -> None:
    plain.train(
        run.model,
        run.train_dl,
        run.optimizer,
        run.lr_scheduler,
        run.device,
        run.progress_bar,
        num_epochs=epochs_left(run),
        updates=updates_left(run),
        after_epoch=after_epoch,
    )


def _evaluate_plain(run: Run, metric: Any) -> dict[str, float]:
    return plain.evaluate(run.model, run.eval_dl, metric, run.device)


def _accelerated(run: Run, after_epoch: Callable[[], None], _: Resumed | None) -> None:
    accelerated.train(
        run.accelerator,
        run.prepared_model,
        run.train_dl,
        run.optimizer,
        run.lr_scheduler,
        run.progress_bar,
        num_epochs=epochs_left(run),
        updates=updates_left(run),
        after_epoch=after_epoch,
    )


def _evaluate_accelerated(run: Run, metric: Any) -> dict[str, float]:
    return accelerated.evaluate(run.accelerator, run.prepared_model, run.eval_dl, metric)


def _trainer(run: Run, _: Callable[[], None], resumed: Resumed | None) -> None:
    trainer.train(run.trainer, run.progress_bar, updates=run.updates, after_epoch=partial(keep, run), resumed=resumed)


@dataclass(frozen=True)
class DocumentedLoop:
    """One of the documented ways to train, and to evaluate what was trained."""

    train: Callable[[Run, Callable[[], None], Resumed | None], None]
    """Given the run, what to call after each epoch, and where Trainer goes on."""
    evaluate: Callable[[Run, Any], dict[str, float]]
    """Given the run and its metric; Trainer's own evaluation is :meth:`Trainer.predict`."""


LOOPS = {
    "plain": DocumentedLoop(_plain, _evaluate_plain),
    "accelerate": DocumentedLoop(_accelerated, _evaluate_accelerated),
    "trainer": DocumentedLoop(_trainer, _evaluate_plain),
}


def updates_left(run: Run) -> int | None:
    """Number of updates after which the training stops early; None where it does not."""
    return run.updates and run.updates - run.gone_on_after


def epochs_left(run: Run) -> int:
    """Number of epochs that the training still goes through."""
    done = run.gone_on_after // len(run.train_dl) if run.gone_on_after else 0
    return run.recipe.epochs - done


def keep(run: Run, loader: DataLoader[Any]) -> None:
    """After a whole epoch: what the training goes on from, should it be killed."""
    if run.keeper is not None:
        run.keeper.keep(run, loader)


class Diverged(Exception):
    """Raised in a training whose last update had gradients that are not finite: so are the weights now."""


@contextmanager
def ended_where_not_finite(run: Run) -> Iterator[None]:
    """The training ends before another forward where an update's gradients, after all ranks' mean, are not finite."""

    def look(model: torch.nn.Module, args: object) -> None:
        made = run.training.last_update
        if torch.is_grad_enabled() and made is not None and not math.isfinite(made.grad_norm):
            raise Diverged

    handle = run.model.register_forward_pre_hook(look)
    try:
        yield
    except Diverged:
        run.diverged = len(run.training.updates)
    finally:
        handle.remove()


def traced(run: Run) -> Trace:
    """Watches the training; with several processes the parameters of every update too, and that it goes on."""
    return Trace(run.model, run.optimizer, checksums=run.recipe.processes > 1, digests=True, on_event=sign_of_life)


def sign_of_life(event: Event | None = None) -> None:
    # From a backward pass on this rank may wait for the others, whose gradients it needs.
    launch.alive(launch.GRACE if isinstance(event, TracedBackward) else 0.0)


def progress_bar(total: int) -> tqdm[int]:
    """The document's bar; where nobody watches (a file, a CI log) it is drawn every ten seconds only."""
    silent = not launch.is_main_process() or os.environ.get("TQDM_DISABLE", "") not in ("", "0")
    return tqdm(range(total), mininterval=0.1 if sys.stderr.isatty() else 10, disable=silent)


def evaluate_between_epochs(run: Run, metric: Any) -> None:
    """Measure after an epoch without a trace in the run: the mode and the random state are put back."""
    training = {module: module.training for module in run.prepared_model.modules()}
    with unchanged_random_state():
        run.epochs.append(evaluation_loop(run, metric))
    for module, mode in training.items():
        module.training = mode


def planned(run: Run) -> int:
    """The updates that this run makes."""
    return run.diverged or min(run.num_training_steps, run.updates or run.num_training_steps)


def epochs_of_rows(run: Run) -> list[list[str]]:
    """The rows that were trained on by all ranks, in order, epoch by epoch; whole epochs only.

    The epochs are told by the number of rows that it takes to fill every batch of every rank.
    """
    seen = rows_in_turn(run.training_forwards)
    size = len(run.model_datasets["train"]) + rows_repeated(run, "train")
    return [seen[start : start + size] for start in range(0, len(seen) - len(seen) % size, size)]


def in_turn(ranks: list[list[TracedForward]]) -> Iterator[TracedForward]:
    """The batches of all ranks: the first of each, then the second, and so on."""
    return (batch for batches in zip_longest(*ranks) for batch in batches if batch)


def rows_in_turn(ranks: list[list[TracedForward]]) -> list[str]:
    """The rows of all ranks' batches, in turn."""
    return [row for batch in in_turn(ranks) for row in batch.rows]


def rows_repeated(run: Run, split: str) -> int:
    """The rows that Accelerate repeats in an epoch so that every process has full batches, one as many as the other.

    ``even_batches``: they are the epoch's own first rows. One process repeats none.
    """
    return -len(run.model_datasets[split]) % run.recipe.rows_per_update if run.recipe.processes > 1 else 0


@STAGE.check(claim("train-mode"), fault="The model was in eval mode in forwards that lead to an update.")
def trains_in_train_mode(run: Run) -> Iterator[Finding]:
    """Every forward that leads to an update is made in train mode."""
    wrong = [f for f in run.training.forwards if f.gradients and not f.training]
    if wrong:
        yield Finding(
            expected="every module in train mode",
            observed=f"{len(wrong)} forwards with modules in eval mode",
            update=wrong[0].update,
            hint="Call model.train() before the loop, and again after each evaluation.",
        )


@STAGE.check(
    claim("one-update-a-batch"),
    fallback_invariant=RECIPE_RESPECTED,
    fault="There is not one forward and one update for each batch.",
)
def one_update_for_each_batch(run: Run) -> Iterator[Finding]:
    """Each batch is one forward and one update, as many as planned."""
    expected = planned(run)
    forwards = [f for f in run.training.forwards if f.gradients]
    if len(run.training.updates) != expected or [f.update for f in forwards] != list(range(1, expected + 1)):
        yield Finding(
            expected=f"{expected} forwards and {expected} updates in turn",
            observed=f"{len(forwards)} forwards and {len(run.training.updates)} updates",
            hint="Call optimizer.step() once for each batch, and go through all epochs.",
        )


@STAGE.check(
    claim("progress-bar"),
    fallback_invariant=RECIPE_RESPECTED,
    fault="The progress bar has another length than the schedule, or does not count every update.",
)
def progress_bar_reaches_the_end(run: Run) -> Iterator[Finding]:
    """The progress bar is as long as the schedule and counts every update."""
    bar, made = run.progress_bar, len(run.training.updates)
    if not hasattr(bar, "start_t"):  # bar.disable is true of every bar once it is closed
        raise NotApplicable("progress bars are switched off (TQDM_DISABLE)")
    if bar.total != run.num_training_steps or bar.n != made:
        yield Finding(
            expected=f"{made} of {run.num_training_steps}",
            observed=f"{bar.n} of {bar.total}",
            hint="Build it over range(num_training_steps) and update(1) once for each update.",
        )


@STAGE.check(claim("lr-follows-schedule"), fault="Updates use another learning rate than the schedule has for them.")
def lr_follows_the_schedule(run: Run) -> Iterator[Finding]:
    """Each update uses the learning rate that the schedule has for it, and after the last one the next is set."""
    made = len(run.training.updates)
    used = [update.lr for update in run.training.updates] + [run.optimizer.param_groups[0]["lr"]]
    for update, (observed, expected) in enumerate(zip(used, run.planned_lrs, strict=False), start=1):
        if observed != expected:
            yield Finding(
                expected=f"{expected:.6g}",
                observed=f"{observed:.6g}",
                where="after the last update" if update > made else None,
                update=min(update, made),
                hint="Call lr_scheduler.step() once after each optimizer.step(), in the batch loop.",
            )
            return


@STAGE.check(claim("zero-grad"), fault="Gradients of an update are still there when the next backward pass begins.")
def gradients_are_reset(run: Run) -> Iterator[Finding]:
    """No gradient is left from an update when the next backward pass begins."""
    wrong = [backward for backward in run.training.backwards if backward.left_over != 0]
    if wrong:
        yield Finding(
            expected="no gradients",
            observed=f"gradients up to {wrong[0].left_over:.3g}",
            update=wrong[0].update,
            hint="Call optimizer.zero_grad() after each optimizer.step(); gradients add up otherwise.",
        )


@STAGE.check(claim("batches-on-device"), fault="The model is given tensors that are on another device than it is.")
def batches_are_on_the_device(run: Run) -> Iterator[Finding]:
    """Every tensor that the model is given is on its device."""
    for forward in run.training.forwards:
        if set(forward.devices) != {run.device.type}:
            yield Finding(
                expected=run.device.type,
                observed=", ".join(forward.devices) or "no tensors",
                update=forward.update,
                hint="Move each batch: {k: v.to(device) for k, v in batch.items()}.",
            )
            return


@STAGE.check(
    "rows-once-an-epoch", fault="An epoch leaves training rows out, repeats them, or gives them another's label."
)
def each_row_once_an_epoch(run: Run) -> Iterator[Finding]:
    """Every epoch brings each training row, with its own label, exactly once, over all processes.

    Accelerate fills the last batches up with the epoch's first rows; those are there twice, and no others.
    """
    rows = run.model_datasets["train"].with_format(None)
    expected = Counter(map(row_key, rows["input_ids"], rows["labels"]))
    epochs = epochs_of_rows(run)
    if not epochs:
        seen = Counter(rows_in_turn(run.training_forwards))
        if surplus := seen - expected:
            yield _rows_finding(0, surplus.total(), "the part of the first epoch that was run")
    for number, epoch in enumerate(epochs, start=1):
        size = expected.total()
        first, again = epoch[:size], epoch[size:]
        seen = Counter(epoch)
        filled_up = expected + Counter(islice(cycle(first), len(again)))
        if seen != filled_up:
            yield _rows_finding((filled_up - seen).total(), (seen - filled_up).total(), f"epoch {number}")


@STAGE.check("equal-ranks", fault="The parameters of the ranks differ after an update.")
def parameters_equal_on_all_ranks(run: Run) -> Iterator[Finding]:
    """After every update the parameters of all ranks are the same, bit for bit."""
    if run.recipe.processes == 1:
        raise NotApplicable("one process")
    ranks = launch.of_all_ranks([update.parameters for update in run.training.updates])
    for number, checksums in enumerate(zip_longest(*ranks), start=1):
        if len(set(checksums)) != 1:
            yield Finding(
                expected="one checksum of the parameters on all ranks",
                observed=f"{len(set(checksums))} different ones on {len(checksums)} ranks",
                update=number,
                hint="Call the model that prepare returned, not the one given to it: only its gradients are averaged.",
            )
            return


def _rows_finding(missing: int, surplus: int, where: str) -> Finding:
    return Finding(
        expected="each training row once",
        observed=f"{missing} rows missing, {surplus} repeated or with other ids or another label",
        where=where,
        hint="Look at the sampler, at drop_last, and at what is done to a batch before the forward.",
    )


@STAGE.check("new-order-every-epoch", fault="Epochs go through the rows in the same order.")
def epochs_differ_in_order(run: Run) -> Iterator[Finding]:
    """Every epoch goes through the rows in another order."""
    epochs = epochs_of_rows(run)
    if not run.recipe.shuffle or len(epochs) < 2 or len(epochs[0]) < ENOUGH_ROWS:
        raise NotApplicable(f"needs two whole epochs of {ENOUGH_ROWS} or more shuffled rows")
    for number, (before, after) in enumerate(pairwise(epochs), start=2):
        if before == after:
            yield Finding(
                expected="another order than in the epoch before",
                observed="the same order",
                where=f"epoch {number}",
                hint="Do not seed anew or keep a list of batches between epochs.",
            )


TRAINER_LOGGING = claim("trainer-logging")


@STAGE.check(TRAINER_LOGGING, fault="Trainer does not log the loss every 500 updates.")
def logs_the_loss_as_documented(run: Run) -> Iterator[Finding]:
    """Trainer logs the loss every 500 updates."""
    every, made = TRAINER_LOGGING.expected, len(run.training.updates)
    observed = [entry["step"] for entry in run.trainer.state.log_history if "loss" in entry]
    expected = list(range(every, made + 1, every))
    yield from expect(
        expected,
        observed,
        of="after updates",
        where="trainer.state.log_history",
        hint="Leave logging_steps and logging_strategy at their defaults.",
    )


@STAGE.check(
    claim("trainer-evaluation"), fault="Trainer does not evaluate once after every epoch with the recipe's metrics."
)
def evaluates_after_every_epoch(run: Run) -> Iterator[Finding]:
    """Trainer evaluates once after every epoch, with the recipe's metrics."""
    run.whole_run_only()
    expected = [len(run.train_dl) * epoch for epoch in range(1, run.recipe.epochs + 1)]
    logged = run.trainer.state.log_history
    told = {"eval_loss", *(f"eval_{name}" for name in scores_of(run.recipe))}
    observed = [entry["step"] for entry in logged if told <= entry.keys()]
    yield from expect(
        expected,
        observed,
        of="after updates",
        where="trainer.state.log_history",
        hint='Give TrainingArguments eval_strategy="epoch", and Trainer compute_metrics.',
    )


MINUTES = 15
"""Where minutes end and hours begin, for a whole training: between the documents' "a couple" of these and "several" of
those."""

ENOUGH_UPDATES = 10
"""From so many on the time of an update is told."""

HOURS_OR_MINUTES = claim("hours-and-minutes")


@STAGE.check(HOURS_OR_MINUTES, severity="warning")  # a faster machine is no mistake
def takes_hours_or_minutes(run: Run) -> Iterator[Finding]:
    """On a GPU the whole training takes less than 15 minutes, on a CPU more, by the time of its updates."""
    device, made = run.device.type, len(run.training.updates) - run.gone_on_after
    if device not in HOURS_OR_MINUTES.expected:
        raise NotApplicable(f"trains on {device}, of which the documents say nothing")
    if made < ENOUGH_UPDATES:
        raise NotApplicable(f"fewer than {ENOUGH_UPDATES} updates")
    minutes = run.training_seconds / made * run.num_training_steps / 60
    expected = HOURS_OR_MINUTES.expected[device]
    if (minutes > MINUTES) != (expected == "hours"):
        yield Finding(
            expected=f"{expected} on {device}: {'more' if expected == 'hours' else 'less'} than {MINUTES} minutes",
            observed=f"{minutes:.1f} minutes for {run.num_training_steps} updates",
            where=f"the time of {made} updates",
            hint="Is it the documented model, on the device that you think? Another load on the machine slows it too.",
        )


@STAGE.check("gradients-reach-all", fault="Trainable parameters have no gradient at an update.")
def gradients_reach_all_parameters(run: Run) -> Iterator[Finding]:
    """At every update every parameter that was trainable at the start has a gradient."""
    if any(getattr(run.model.config, name, 0) for name in LAYERDROP):
        raise NotApplicable("this model leaves out layers at random (LayerDrop)")
    for update in run.training.updates:
        missing = [name for name in update.missing if not name.endswith(UNUSED)]
        if missing:
            yield Finding(
                expected="a gradient for every trainable parameter",
                observed=f"none for {len(missing)} of them",
                where=missing[0],
                update=update.update,
                hint="Call loss.backward() before optimizer.step(); do not detach in the model or freeze in the loop.",
            )
            return


@STAGE.check("parameters-change", fault="Parameters with a gradient do not change.")
def parameters_change(run: Run) -> Iterator[Finding]:
    """Updates change the parameters that have a gradient: each when it is first updated, and again and again."""
    for update, names in run.training.unchanged.items():
        yield Finding(
            expected="every parameter with a gradient changed",
            observed=f"{len(names)} of those looked at unchanged",
            where=names[0],
            update=update,
            hint="The optimizer holds other tensors than the model uses, or does not update them any more.",
        )
        return
    if run.training.updates and not any(run.planned_lrs[: len(run.training.updates)]):
        raise NotApplicable("every update so far was planned at learning rate 0 (warmup)")
    if not any(update.lr > 0 and update.grad_norm != 0 for update in run.training.updates):
        yield Finding(
            expected="an update with gradients and a learning rate above 0",
            observed="none",
            hint="Call loss.backward() and optimizer.step() for each batch.",
        )


@STAGE.check("finite-loss", fault="The loss or the gradient norm is not finite.")
def loss_stays_finite(run: Run) -> Iterator[Finding]:
    """Loss and gradient norm are finite at every update."""
    for forward in run.training.forwards:
        if forward.loss is None or not math.isfinite(forward.loss):
            yield Finding(
                expected="a finite loss",
                observed=f"{forward.loss}",
                update=forward.update,
                hint="Look for a learning rate that is too high, half precision without scaling, or bad labels.",
            )
            return
    for update in run.training.updates:
        if not math.isfinite(update.grad_norm):
            yield Finding(
                expected="a finite gradient norm",
                observed=f"{update.grad_norm}",
                update=update.update,
                hint="Clip the gradients, or look at the batch of this update.",
            )
            return
