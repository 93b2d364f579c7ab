"""Equivalence: this run's loop and the plain loop are one computation, shown before the updates are spent.

A *replay* is a short training from the state that the run is in, on copies; the run goes on as if there had been none.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import torch
from torch.optim import AdamW

from harness.documented_run.claims import Invariant, claim
from harness.documented_run.loops import accelerated
from harness.documented_run.stages.chain import Run, Stage
from harness.documented_run.stages.replays.differences import measured_differences
from harness.documented_run.stages.replays.replays import (
    DESCENT,
    TRAINERS_BATCH,
    micro_batches,
    one_batch,
    placed_by_hand,
    replayed,
    replayed_in,
    takes_no_other_keywords,
    trainers_update,
)
from harness.documented_run.stages.replays.results import Replay, Replays
from harness.documented_run.stages.replays.tolerances import (
    BF16_UNIT,
    largest_difference,
    max_differences,
    rounding,
    rounding_band,
    tolerance_of,
    tolerance_text,
)
from harness.documented_run.stages.replays.twins import (
    comparable,
    has_float64,
    in_fixed_order,
    plain_twin,
    planned,
    trainer_twin,
    twin,
)
from harness.findings import Finding, NotApplicable
from harness.torch_objects import unchanged_random_state

STAGE = Stage("equivalence", loops=("accelerate", "trainer"))


@STAGE.step_of("accelerate")
def equivalence(run: Run) -> None:
    run.replays = Replays()
    trainings = run.replays.trainings
    several = run.recipe.processes > 1
    # Several processes share the rows in order, and only whole batches are alike.
    in_order = {"shuffle": False} if several else {}
    whole = len(run.model_datasets["train"]) // run.recipe.rows_per_update
    updates = min(planned(run), whole) if several else planned(run)
    with unchanged_random_state(), accelerated.separate_state():
        if updates:
            by_hand = in_order | {"batch_size": run.recipe.rows_per_update}
            trainings["plain"] = replayed(twin(run, updates, comparable(run), loop="plain", **by_hand))
            trainings["accelerate"] = replayed(twin(run, updates, comparable(run), **in_order))
        if updates and not several:
            trainings["placed by hand"] = placed_by_hand(run)
        if not several and has_float64(run):
            trainings |= {"one batch": one_batch(run), "micro-batches": micro_batches(run)}
    if not several:
        trainings["float32"] = replayed_in(run, "no")
        try:
            trainings["bf16"] = replayed_in(run, "bf16")
        except Exception as error:  # noqa: BLE001 - a device or a model that cannot; the recipe does not ask for it
            run.replays.no_bf16 = f"{type(error).__name__}: {error}"
    run.replays.max_differences = max_differences(run)


@STAGE.step_of("trainer")
def trainer_equivalence(run: Run) -> None:
    run.replays = Replays()
    trainings = run.replays.trainings
    with unchanged_random_state():
        trainings["plain"] = replayed(in_fixed_order(plain_twin(run)))
        trainings["trainer"] = replayed(trainer_twin(run))
        run.replays.differences = measured_differences(run, trainings["plain"])
        if has_float64(run) and len(run.model_datasets["train"]) >= TRAINERS_BATCH:
            trainings["one batch"] = trainers_update(run, 1)
            trainings["micro-batches"] = trainers_update(run, 4)
            trainings["micro-batches of other models"] = trainers_update(run, 4, takes_no_other_keywords)
    run.replays.max_differences = max_differences(run)


def updates_differ(ours: Replay, theirs: Replay, tolerance: float, hint: str) -> Iterator[Finding]:
    """The first update whose gradients, or whose number, differ by more than the tolerance."""
    if len(ours.grad_norms) != len(theirs.grad_norms):
        yield Finding(expected=f"{len(ours.grad_norms)} updates", observed=f"{len(theirs.grad_norms)}", hint=hint)
        return
    for update, (one, other) in enumerate(zip(ours.grad_norms, theirs.grad_norms, strict=True), start=1):
        if not abs(one - other) <= tolerance * abs(one):
            yield Finding(
                expected=f"gradient norm {one!r}{tolerance_text(tolerance)}",
                observed=f"{other!r}",
                update=update,
                hint=hint,
            )
            return


def losses_differ(ours: Replay, theirs: Replay, tolerance: float, hint: str) -> Iterator[Finding]:
    """The first update whose loss, or else whose gradients or number, differ by more than the tolerance."""
    for update, (one, other) in enumerate(zip(ours.losses, theirs.losses, strict=False), start=1):
        if not abs(one - other) <= tolerance * abs(one):
            yield Finding(
                expected=f"the loss {one!r}{tolerance_text(tolerance)}", observed=f"{other!r}", update=update, hint=hint
            )
            return
    yield from updates_differ(ours, theirs, tolerance, hint)


def check_same_updates(run: Run) -> Iterator[Finding]:
    """Where this loop's replay and the plain loop's differ by more than their arithmetic allows."""
    trainings = run.replays.trainings
    if "plain" not in trainings:
        raise NotApplicable(f"fewer training rows than the {run.recipe.rows_per_update} of an update")
    ours, theirs, tolerance = trainings["plain"], trainings[run.recipe.loop], tolerance_of(run)
    hint = "From here on the two loops compute different things: compare them line by line."
    if found := list(losses_differ(ours, theirs, tolerance, hint)):
        yield from found
        return
    # Adam divides by the size of the gradient plus epsilon, so a rounding error weighs most where there is no gradient.
    epsilon = AdamW([torch.zeros(1)]).defaults["eps"]
    allowed = len(ours.grad_norms) * run.recipe.lr * min(1.0, tolerance * max(ours.grad_norms) / epsilon)
    if not (difference := largest_difference(ours, theirs)) <= allowed:
        yield Finding(
            expected=f"the plain loop's parameters, within {allowed:.2g}",
            observed=f"{difference:.2g} from them",
            update=len(ours.grad_norms),
            hint="Losses and gradients agree, the updates do not: compare optimizer and schedule.",
        )


@STAGE.check(claim("accelerate-same-training"))
def accelerate_trains_as_the_plain_loop(run: Run) -> Iterator[Finding]:
    """From one state the loop under Accelerate and the plain loop make the same updates: bit for bit on one CPU.

    With several processes, and on GPUs, both are compared in float64, without dropout, at the same rows an update.
    """
    yield from check_same_updates(run)


@STAGE.check(claim("accelerate-device-by-hand"), loops=("accelerate",))
def placing_by_hand_is_the_same_training(run: Run) -> Iterator[Finding]:
    """With model and batches put on accelerator.device by hand the updates are those of the loop without that."""
    trainings = require_replay(run, "placed by hand")
    theirs = trainings["placed by hand"]
    made = len(theirs.grad_norms)
    ours = trainings["accelerate"]
    first = replace(ours, losses=ours.losses[:made], grad_norms=ours.grad_norms[:made])
    hint = "Keep every key of the batch, and put it on accelerator.device: {k: v.to(device) for k, v in batch.items()}."
    yield from losses_differ(first, theirs, tolerance_of(run), hint)


ACCUMULATION = Invariant(
    "accumulation", "Micro-batches that are accumulated are one batch, at the end of an epoch too."
)


@STAGE.check(ACCUMULATION, loops=("accelerate",))
def accumulated_micro_batches_are_one_batch(run: Run) -> Iterator[Finding]:
    """Four micro-batches of 2 under accelerator.accumulate give the clipped gradients of one batch of 8.

    Also in the window that is not full at the end of the epoch. In float64, without dropout, by gradient descent: the
    parameters are then the sum of the gradients.
    """
    trainings = require_replay(run, "micro-batches")
    ours, theirs, tolerance = trainings["one batch"], trainings["micro-batches"], rounding(run, torch.float64)
    hint = "Weight each loss by its share of the window's rows, and clip where sync_gradients is true."
    if found := list(updates_differ(ours, theirs, tolerance, hint)):
        yield from found
        return
    allowed = tolerance * DESCENT * sum(ours.grad_norms)
    largest = max(parameter.abs().max().item() for parameter in ours.parameters.values())
    allowed += len(ours.grad_norms) * largest * torch.finfo(torch.float64).eps  # of adding to the parameters
    if not (difference := largest_difference(ours, theirs)) <= allowed:
        yield Finding(
            expected=f"the parameters of whole batches, within {allowed:.2g}",
            observed=f"{difference:.2g} from them",
            hint=hint,
        )


@STAGE.check("mixed-precision", loops=("accelerate",))
def bf16_stays_near_float32(run: Run) -> Iterator[Finding]:
    """Under mixed_precision="bf16" the losses stay near float32's, are not the same, and the weights are float32."""
    trainings = require_replay(run, "bf16")
    expected, observed = trainings["float32"], trainings["bf16"]
    band = rounding_band(run, BF16_UNIT)
    for update, (ours, theirs) in enumerate(zip(expected.losses, observed.losses, strict=True), start=1):
        if not abs(ours - theirs) <= band:
            yield Finding(
                expected=f"loss {ours:.4f} within {band:.2g}",
                observed=f"{theirs:.4f}",
                update=update,
                hint="bf16 keeps 8 bits of a number; more than this is no rounding.",
            )
            break
    if expected.losses == observed.losses:
        yield Finding(
            expected="losses rounded by bf16",
            observed="those of float32, bit for bit",
            hint="Autocast does not reach the model: call the one that prepare returned.",
        )
    other = {str(p.dtype) for p in observed.parameters.values()} - {"torch.float32"}
    if other:
        yield Finding(
            expected="weights in torch.float32",
            observed=", ".join(sorted(other)),
            hint="Leave the weights in float32; updates of 5e-5 are rounded away in bf16.",
        )


def require_replay(run: Run, replay: str) -> dict[str, Replay]:
    """The run's replays, for checks of one that not every run has.

    Raises:
        NotApplicable: this run has none, with the reason.
    """
    if run.recipe.processes > 1:
        raise NotApplicable("compared in one process")
    if replay not in run.replays.trainings:
        raise NotApplicable(f"not on {run.device.type}: {run.replays.no_bf16 or 'it has no float64'}")
    return run.replays.trainings


@STAGE.check(claim("trainer-same-defaults"))
def trainer_without_its_differences_is_the_plain_loop(run: Run) -> Iterator[Finding]:
    """With the listed differences switched off, Trainer makes the plain loop's updates: bit for bit on a CPU."""
    yield from check_same_updates(run)


@STAGE.check(ACCUMULATION, severity="warning", loops=("trainer",))
def trainer_accumulates_as_one_batch(run: Run) -> Iterator[Finding]:
    """Under Trainer four accumulated micro-batches of 4 give the gradients of one batch of 16.

    A warning, because no recipe accumulates: it says what gradient_accumulation_steps does on these versions. Wrong for
    all models in transformers 4.46 and 4.47, and from 5.0 on, but for 5.2 to 5.5.3, for those whose forward takes any
    keyword, such as BERT's (huggingface/transformers#47688).
    """
    yield from _accumulated_by_trainer(
        run,
        "micro-batches",
        "On transformers 5 set trainer.model_accepts_loss_kwargs = False, and Trainer divides; 4.46 and 4.47 never do: "
        "use another version.",
    )


@STAGE.check(ACCUMULATION, severity="warning", loops=("trainer",))
def trainer_accumulates_other_models_as_one_batch(run: Run) -> Iterator[Finding]:
    """The same for a model whose forward takes no keywords but its own, as that of a module of one's own does.

    A warning, as above. The loss is divided twice in transformers 5.2.0 to 5.5.3 (huggingface/transformers#45434), and
    not at all in 4.46 and 4.47.
    """
    yield from _accumulated_by_trainer(
        run,
        "micro-batches of other models",
        "transformers 5.2.0 to 5.5.3 divide the loss by gradient_accumulation_steps twice, 4.46 and 4.47 never: use "
        "another version.",
    )


def _accumulated_by_trainer(run: Run, micro_batches: str, hint: str) -> Iterator[Finding]:
    trainings = run.replays.trainings
    if micro_batches not in trainings:
        few = len(run.model_datasets["train"]) < TRAINERS_BATCH
        raise NotApplicable(f"fewer than {TRAINERS_BATCH} rows" if few else f"no float64 on {run.device.type}")
    ours, theirs = trainings["one batch"], trainings[micro_batches]
    one, other = ours.grad_norms[0], theirs.grad_norms[0]
    tolerance = rounding(run, torch.float64)
    if len(theirs.grad_norms) != 1 or not abs(one - other) <= tolerance * abs(one):
        updates = f"{len(theirs.grad_norms)} updates, the first with " if len(theirs.grad_norms) != 1 else ""
        yield Finding(
            expected=f"the gradient of one batch of {TRAINERS_BATCH}{tolerance_text(tolerance)}",
            observed=f"{updates}a gradient {other / one:.4g} times as large",
            where="Trainer with gradient_accumulation_steps=4",
            hint=hint,
        )
    elif not (difference := largest_difference(ours, theirs)) <= tolerance * one:
        yield Finding(
            expected="a gradient in the same direction",
            observed=f"one of the same size in another; the parameters are {difference:.2g} apart",
            where="Trainer with gradient_accumulation_steps=4",
            hint="Compare the rows of the micro-batches with those of the batch.",
        )
