"""Schedule: linear decay to 0 over all updates (document "Prepare for training")."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator

import torch
from torch.optim import SGD
from torch.optim.lr_scheduler import LRScheduler
from transformers import get_scheduler

from harness.documented_run.claims import claim
from harness.documented_run.recipe import Recipe
from harness.documented_run.stages.chain import Run, Stage
from harness.findings import Finding, expect
from harness.torch_objects import raw_optimizer

STAGE = Stage("schedule")


@STAGE.step
def schedule(run: Run) -> None:
    num_epochs = run.recipe.epochs
    run.num_training_steps = num_epochs * len(run.train_dl)
    run.lr_scheduler = scheduler(run, run.num_training_steps)


def scheduler(run: Run, num_training_steps: int) -> LRScheduler:
    """The document's ``get_scheduler`` with the recipe's values."""
    lr_scheduler: LRScheduler = get_scheduler(
        run.recipe.schedule,
        optimizer=run.optimizer,
        num_warmup_steps=run.recipe.warmup_updates,
        num_training_steps=num_training_steps,
    )
    return lr_scheduler


@STAGE.step_of("trainer")
def trainers_schedule(run: Run) -> None:
    run.num_training_steps = math.ceil(run.trainer.args.num_train_epochs * len(run.train_dl))
    run.lr_scheduler = run.trainer.create_scheduler(run.num_training_steps)


def linear_lr(recipe: Recipe, made: int, planned: int) -> float:
    """The learning rate after ``made`` of ``planned`` updates: up over the warmup, then down to 0, in closed form."""
    if made < recipe.warmup_updates:
        return recipe.lr * made / recipe.warmup_updates
    return recipe.lr * max(0.0, (planned - made) / max(1, planned - recipe.warmup_updates))


def rehearsed_lrs(run: Run) -> list[float]:
    """The learning rates that the schedule gives: before the first update, then after each of the planned ones.

    The scheduler is stepped to the end and put back. One that Accelerate prepared takes several steps an update, one
    for each process, unless batches are split.
    """
    groups = run.optimizer.param_groups
    state, lrs = run.lr_scheduler.state_dict(), [group["lr"] for group in groups]
    rehearsed = [groups[0]["lr"]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch warns of a scheduler that is stepped before its optimizer
        for _ in range(run.num_training_steps):
            run.lr_scheduler.step()
            rehearsed.append(groups[0]["lr"])
    run.lr_scheduler.load_state_dict(state)
    for group, lr in zip(groups, lrs, strict=True):
        group["lr"] = lr
    return rehearsed


@STAGE.check(
    claim("updates-planned"), fault="The schedule is planned for another number of updates than epochs x batches."
)
def updates_planned(run: Run) -> Iterator[Finding]:
    """The schedule is planned for epochs x batches updates."""
    expected = run.recipe.epochs * len(run.train_dl)
    yield from expect(
        expected,
        run.num_training_steps,
        of=f"{run.recipe.epochs} epochs x {len(run.train_dl)} batches:",
        where="num_training_steps",
        hint="Multiply the epochs by the length of the dataloader that the loop goes through (after prepare).",
    )


NUM_TRAINING_STEPS = claim("num-training-steps")


@STAGE.check(NUM_TRAINING_STEPS, fault="Another number of updates is planned than the documented one.")
def documented_number_of_updates(run: Run) -> Iterator[Finding]:
    """The documented number of updates is planned."""
    expected = NUM_TRAINING_STEPS.expected[run.recipe.dataset]
    yield from expect(
        expected,
        run.num_training_steps,
        where="num_training_steps",
        hint="Check the number of rows, the batch size and the number of epochs.",
    )


@STAGE.check(claim("no-warmup"), fault="The first update is not made at the full learning rate.")
def first_update_at_full_lr(run: Run) -> Iterator[Finding]:
    """The first update is made at the full learning rate."""
    observed = run.optimizer.param_groups[0]["lr"]
    yield from expect(
        run.recipe.lr,
        observed,
        where="update 1",
        update=1,
        hint="Set num_warmup_steps=0, and do not step the scheduler before the first update.",
    )


@STAGE.check(claim("warmup"), fault="The warmup does not rise linearly from 0 to the maximum and fall from there.")
def warms_up_linearly(run: Run) -> Iterator[Finding]:
    """With a warmup the learning rate rises linearly from 0 to its maximum, and falls from there.

    A recipe without one, as the documents', is looked at with a warmup of a tenth of its updates, on another optimizer.
    """
    warmup = run.recipe.warmup_updates or max(2, run.num_training_steps // 10)
    recipe = run.recipe.with_(warmup_updates=warmup)
    lrs = rehearsed_lrs(run) if run.recipe.warmup_updates else warmed_up_lrs(recipe, run.num_training_steps)
    for made, observed in enumerate(lrs[: warmup + 2]):
        expected = linear_lr(recipe, made, run.num_training_steps)
        if not math.isclose(observed, expected, rel_tol=1e-9, abs_tol=1e-15):
            yield Finding(
                expected=f"{expected:.6g}",
                observed=f"{observed:.6g}",
                where=f"after {made} updates of a warmup of {warmup}",
                update=made,
                hint="Give get_scheduler num_warmup_steps, in updates, and step it once for each update.",
            )
            return


def warmed_up_lrs(recipe: Recipe, planned: int) -> list[float]:
    """The learning rates of the recipe's schedule with its warmup, up to the second update behind it."""
    stepped = SGD([torch.zeros(1)], lr=recipe.lr)
    scheduler = get_scheduler(
        recipe.schedule, stepped, num_warmup_steps=recipe.warmup_updates, num_training_steps=planned
    )
    lrs = [stepped.param_groups[0]["lr"]]
    for _ in range(recipe.warmup_updates + 1):
        stepped.step()
        scheduler.step()
        lrs.append(stepped.param_groups[0]["lr"])
    return lrs


@STAGE.check(claim("linear-decay"), fault="The learning rate does not follow the closed form.")
def decays_linearly(run: Run) -> Iterator[Finding]:
    """The learning rate follows the closed form at every update."""
    for made, observed in enumerate(rehearsed_lrs(run)):
        expected = linear_lr(run.recipe, made, run.num_training_steps)
        if not math.isclose(observed, expected, rel_tol=1e-9, abs_tol=1e-15):
            yield Finding(
                expected=f"{expected:.6g}",
                observed=f"{observed:.6g}",
                where=f"after {made} of {run.num_training_steps} updates",
                update=made,
                hint='Use get_scheduler("linear", ...) with the planned number of updates.',
            )
            return


DECAY_TO_ZERO = claim("decay-to-zero")


@STAGE.check(DECAY_TO_ZERO, fault="After the last planned update the learning rate is not 0, or it was below 0 before.")
def ends_at_zero(run: Run) -> Iterator[Finding]:
    """After the last planned update the learning rate is exactly 0, and it was never below."""
    lrs = rehearsed_lrs(run)
    if lrs[-1] != DECAY_TO_ZERO.expected or min(lrs) < 0:
        yield Finding(
            expected=f"{DECAY_TO_ZERO.expected} at the end, never below",
            observed=f"{lrs[-1]:.6g} at the end, {min(lrs):.6g} at the lowest",
            update=run.num_training_steps,
            hint="Plan the schedule for exactly the updates that will be made.",
        )


@STAGE.check("optimizer-bound", fault="The scheduler does not set the learning rate of the optimizer that trains.")
def drives_this_optimizer(run: Run) -> Iterator[Finding]:
    """The scheduler sets the learning rate of the optimizer that trains."""
    scheduler = getattr(run.lr_scheduler, "scheduler", run.lr_scheduler)  # the one inside Accelerate's
    if raw_optimizer(scheduler.optimizer) is not raw_optimizer(run.optimizer):
        yield Finding(
            expected="the scheduler's optimizer is the optimizer",
            observed="another optimizer",
            hint="Create the scheduler after the optimizer, and neither of them twice.",
        )
