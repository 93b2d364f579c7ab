"""Equivalence: this run's loop and the plain loop are one computation, shown before the updates are spent.

A *replay* is a short training from the state that the run is in, on copies; the run goes on as if there had been none.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from statistics import fmean
from typing import Any

import torch
from accelerate import Accelerator
from torch.optim import SGD, AdamW, Optimizer
from torch.optim.lr_scheduler import ConstantLR
from torch.utils.data import DataLoader
from tqdm.auto import tqdm
from transformers import PreTrainedModel, Trainer, set_seed
from transformers.trainer_utils import IntervalStrategy

from harness import launch
from harness.compat import evaluation_strategy, processing_class
from harness.findings import Difference, Finding, NotApplicable
from harness.loops import accelerated, plain
from harness.loops.adamw import TransformersAdamW
from harness.loops.trainer import quiet_trainer
from harness.stages import batches, optimizer, prepare, schedule, train
from harness.stages.chain import Run, Stage
from harness.watch.observer import unchanged_random_state
from harness.watch.trace import Trace, raw_optimizer

STAGE = Stage("equivalence", loops=("accelerate", "trainer"))

REPLAYED = 20
"""Updates in a replay."""

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

BF16_UNIT = torch.finfo(torch.bfloat16).eps / 2
"""2^-8: by so much of its size bf16 rounds a number."""

BF16_UPDATES = 8


@dataclass
class Replay:
    """What a short training did."""

    losses: list[float]
    """One for each forward; with several processes the mean over the ranks, whose batches are equally large."""
    grad_norms: list[float]
    """The 2-norm over all gradients, as each update used them."""
    parameters: dict[str, torch.Tensor]
    """After the last update, on the CPU."""


@STAGE.step_of("accelerate")
def equivalence(run: Run) -> None:
    several = run.recipe.processes > 1
    # Several processes share the rows in order, and only whole batches are alike.
    in_order = {"shuffle": False} if several else {}
    whole = len(run.model_datasets["train"]) // run.recipe.rows_per_update
    updates = min(planned(run), whole) if several else planned(run)
    with unchanged_random_state(), accelerated.separate_state():
        if updates:
            by_hand = in_order | {"batch_size": run.recipe.rows_per_update}
            run.replays["plain"] = replayed(twin(run, updates, comparable(run), loop="plain", **by_hand))
            run.replays["accelerate"] = replayed(twin(run, updates, comparable(run), **in_order))
        if not several and has_float64(run):
            run.replays |= {"one batch": one_batch(run), "micro-batches": micro_batches(run)}
    if not several:
        run.replays["float32"] = replayed_in(run, "no")
        try:
            run.replays["bf16"] = replayed_in(run, "bf16")
        except Exception as error:  # noqa: BLE001 - a device or a model that cannot; the recipe does not ask for it
            run.no_bf16 = f"{type(error).__name__}: {error}"
    run.apart = measured(run)


def replayed_in(run: Run, precision: str) -> Replay:
    """Some updates under Accelerate's mixed precision."""
    with unchanged_random_state(), accelerated.separate_state():
        Accelerator(mixed_precision=precision)  # the state that the twin's own shares
        return replayed(twin(run, min(BF16_UPDATES, planned(run)), without_dropout))


@STAGE.step_of("trainer")
def trainer_equivalence(run: Run) -> None:
    with unchanged_random_state():
        run.replays["plain"] = by_hand = replayed(in_fixed_order(plain_twin(run)))
        run.replays["trainer"] = replayed(trainer_twin(run))
        run.differences = [
            Difference(what, there, here, largest_difference(by_hand, replayed(trainer_twin(run, **switched_on))))
            for what, there, here, switched_on in settings(run)
        ]
        then = plain_twin(run)
        then.optimizer = TransformersAdamW(then.model.parameters(), lr=run.recipe.lr)
        schedule.STAGE.do(then)
        group, now = then.optimizer.param_groups[0], AdamW(then.model.parameters()).defaults
        if has_float64(run) and len(run.model_datasets["train"]) >= TRAINERS_BATCH:
            run.replays |= {"one batch": trainers_update(run, 1), "micro-batches": trainers_update(run, 4)}
        run.differences.append(
            Difference(
                "the documents' transformers.AdamW",
                f"epsilon {group['eps']}, decay {group['weight_decay']}",
                f"epsilon {now['eps']}, decay {now['weight_decay']}",
                largest_difference(by_hand, replayed(in_fixed_order(then))),
            )
        )
    run.apart = measured(run)


def plain_twin(run: Run) -> Run:
    return twin(run, planned(run), comparable(run), loop="plain")


def planned(run: Run) -> int:
    """The updates of a replay."""
    return min(REPLAYED, train.planned(run))


# -------------------------------------------------------------------------------------------------------------- twins


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
    return (lambda model: None) if alone or not has_float64(run) else exact


def exact(model: PreTrainedModel) -> None:
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
    pinned(other.model, other.recipe.seed)
    return other


def pinned(model: torch.nn.Module, seed: int) -> None:
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
    pinned(other.model, run.recipe.seed)
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


def settings(run: Run) -> Iterator[tuple[str, str, str, dict[str, Any]]]:
    """Where Trainer is not the loop by hand: what, its value, the value by hand, and how to switch it on."""
    args, optimizer_ = run.trainer.args, raw_optimizer(run.optimizer)
    groups, by_hand = optimizer_.param_groups, AdamW(run.model.parameters()).defaults
    clipping = {"max_grad_norm": args.max_grad_norm}
    yield "gradient clipping (max_grad_norm)", f"{args.max_grad_norm}", "none", clipping
    if not isinstance(optimizer_, AdamW):
        own = type(optimizer_)

        def of_trainer(model: PreTrainedModel) -> Optimizer:
            same = {name: by_hand[name] for name in ("lr", "betas", "eps", "weight_decay")} | {"lr": run.recipe.lr}
            made: Optimizer = own(model.parameters(), **same)
            return made

        yield (
            "AdamW's class",
            f"{own.__module__.split('.')[0]}.{own.__name__}",
            "torch.optim.AdamW",
            {"adamw": of_trainer},
        )
    # Whatever Trainer sets otherwise for its first group of parameters, which is decayed; epsilon in any case.
    for name, value in by_hand.items():
        there = groups[0].get(name, value)
        if name != "lr" and (there != value or name == "eps"):
            yield f"AdamW's {name}", f"{there}", f"{value}", {"adamw": default_adamw(run, **{name: there})}
    if len(groups) > 1:
        names = {id(parameter): name for name, parameter in run.model.named_parameters()}
        apart_ = {names[id(parameter)] for group in groups[1:] for parameter in group["params"]}

        def in_groups(model: PreTrainedModel) -> Optimizer:
            named = list(model.named_parameters())
            parts: list[dict[str, Any]] = [
                {"params": [p for name, p in named if name not in apart_]},
                {"params": [p for name, p in named if name in apart_], "weight_decay": 0.0},
            ]
            return AdamW(parts, lr=run.recipe.lr)

        there = f"{len(groups)}; {len(apart_)} tensors not decayed"
        yield "parameter groups", there, "1", {"adamw": in_groups}
    yield "data order", "a sampler seeded by itself", "torch's global generator", {"own_order": True}


# ------------------------------------------------------------------------------------------------------------ replays


def replayed(other: Run) -> Replay:
    """What the twin's loop does."""
    other.progress_bar = tqdm(disable=True)
    set_seed(other.recipe.seed)
    return recorded(other.model, other.optimizer, lambda: train.loop(other))


def recorded(model: PreTrainedModel, stepped: Optimizer, loop: Callable[[], None]) -> Replay:
    """What a loop does with a model and its optimizer."""
    with Trace(model, stepped, on_event=train.sign_of_life) as trace:
        loop()
    losses = [math.nan if each.loss is None else each.loss for each in trace.forwards if each.gradients]
    return Replay(
        losses=[fmean(ranks) for ranks in zip(*launch.of_all_ranks(losses), strict=True)],
        grad_norms=[update.grad_norm for update in trace.updates],
        parameters={name: parameter.detach().cpu() for name, parameter in model.named_parameters()},
    )


def first_rows(run: Run, batch_size: int) -> DataLoader[Any]:
    """The first training rows, in order."""
    rows = run.model_datasets["train"]
    return DataLoader(
        rows.select(range(min(WINDOW_ROWS, len(rows)))), batch_size=batch_size, collate_fn=run.data_collator
    )


def one_batch(run: Run) -> Replay:
    """The plain loop in batches of 8, clipped, with plain gradient descent: what is compared is the gradients."""
    model = copied(run, exact)
    descent = SGD(model.parameters(), lr=DESCENT)

    def clips(*_: Any) -> None:
        torch.nn.utils.clip_grad_norm_(model.parameters(), MAX_NORM)

    descent.register_step_pre_hook(clips)  # before the trace's, which gets the clipped gradients
    constant, bar = ConstantLR(descent, factor=1.0), tqdm(disable=True)
    batches_ = first_rows(run, BATCH)
    return recorded(
        model, descent, lambda: plain.train(model, batches_, descent, constant, run.device, bar, num_epochs=1)
    )


def micro_batches(run: Run, train_accumulating: Callable[..., None] = accelerated.train_accumulating) -> Replay:
    """The same rows in micro-batches of 2, four of which Accelerate accumulates."""
    with accelerated.separate_state():
        accelerator = Accelerator(gradient_accumulation_steps=BATCH // MICRO_BATCH)
        model = copied(run, exact)
        prepared, loader, descent = accelerator.prepare(
            model, first_rows(run, MICRO_BATCH), SGD(model.parameters(), lr=DESCENT)
        )
        return recorded(
            model, descent, lambda: train_accumulating(accelerator, prepared, loader, descent, max_norm=MAX_NORM)
        )


def trainers_update(run: Run, micro_batches: int, prepared: Callable[[Trainer], None] = lambda trainer: None) -> Replay:
    """One update by Trainer over the first rows, in so many micro-batches, by plain gradient descent."""
    constant: dict[str, Any] = {"lr_scheduler_type": "constant", "warmup_steps": 0, "num_train_epochs": 1}
    with accelerated.separate_state():
        other = trainer_twin(
            run,
            adamw=lambda model: SGD(model.parameters(), lr=DESCENT),
            change=exact,
            gradient_accumulation_steps=micro_batches,
            **constant,
        )
        rows = run.model_datasets["train"].select(range(TRAINERS_BATCH))
        loader = DataLoader(rows, batch_size=TRAINERS_BATCH // micro_batches, collate_fn=run.data_collator)
        other.trainer.get_train_dataloader = lambda: loader
        prepared(other.trainer)
        return replayed(other)


# ---------------------------------------------------------------------------------------------------------- comparison


def rounding(run: Run, dtype: torch.dtype) -> float:
    """How far two orders of one computation may be apart, relative to the result.

    The error of a sum of n rounded terms is at most n u, u being half the distance of 1 to the next number (Higham,
    "Accuracy and Stability of Numerical Algorithms", 3.1). The longest chain of terms behind a gradient goes over all
    tokens of the batch and, forth and back, the inputs and outputs of every linear layer.
    """
    linear = [module for module in run.model.modules() if isinstance(module, torch.nn.Linear)]
    longest = max(len(ids) for ids in run.model_datasets["train"].with_format(None)["input_ids"])
    chain = run.recipe.rows_per_update * longest + 2 * sum(each.in_features + each.out_features for each in linear)
    return chain * torch.finfo(dtype).eps / 2


def largest_difference(first: Replay, second: Replay) -> float:
    """Of any parameter at the end."""
    return max(
        (first.parameters[name].double() - second.parameters[name].double()).abs().max().item()
        for name in first.parameters
    )


def relative(ours: list[float], theirs: list[float]) -> float:
    """The largest difference of two lists, relative to the first."""
    pairs = zip(ours, theirs, strict=False)
    return max((abs(one - other) / (abs(one) or 1.0) for one, other in pairs), default=0.0)


def measured(run: Run) -> dict[str, float]:
    """How far the replays are apart at most: relative to the plain loop's; parameters and bf16's loss as they are."""
    distances: dict[str, float] = {}
    if "plain" in run.replays:
        ours, theirs = run.replays["plain"], run.replays[run.recipe.loop]
        distances |= {
            "updates": float(len(ours.grad_norms)),
            "loss": relative(ours.losses, theirs.losses),
            "gradient norm": relative(ours.grad_norms, theirs.grad_norms),
            "parameters": largest_difference(ours, theirs),
        }
    if "micro-batches" in run.replays:
        ours, theirs = run.replays["one batch"], run.replays["micro-batches"]
        distances["accumulated gradient norm"] = relative(ours.grad_norms, theirs.grad_norms)
    if "bf16" in run.replays:
        losses = zip(run.replays["float32"].losses, run.replays["bf16"].losses, strict=False)
        distances["loss under bf16"] = max(abs(float32 - bf16) for float32, bf16 in losses)
    return distances


def updates_differ(ours: Replay, theirs: Replay, tolerance: float, hint: str) -> Iterator[Finding]:
    """The first update whose gradients, or whose number, differ by more than the tolerance."""
    if len(ours.grad_norms) != len(theirs.grad_norms):
        yield Finding(expected=f"{len(ours.grad_norms)} updates", observed=f"{len(theirs.grad_norms)}", hint=hint)
        return
    for update, (one, other) in enumerate(zip(ours.grad_norms, theirs.grad_norms, strict=True), start=1):
        if not abs(one - other) <= tolerance * abs(one):
            yield Finding(
                expected=f"gradient norm {one!r}{within(tolerance)}", observed=f"{other!r}", update=update, hint=hint
            )
            return


def within(tolerance: float) -> str:
    return f", within {tolerance:.2g} of it" if tolerance else ""


def tolerance_of(run: Run) -> float:
    """Of the comparison with the plain loop, relative."""
    if run.recipe.processes == 1 and run.device.type == "cpu":
        return 0.0
    return rounding(run, torch.float64 if has_float64(run) else torch.float32)


def apart(run: Run) -> Iterator[Finding]:
    """Where this loop's replay and the plain loop's differ by more than their arithmetic allows."""
    if "plain" not in run.replays:
        raise NotApplicable(f"fewer training rows than the {run.recipe.rows_per_update} of an update")
    ours, theirs, tolerance = run.replays["plain"], run.replays[run.recipe.loop], tolerance_of(run)
    hint = "From here on this loop is another computation: compare the two line by line."
    for update, (one, other) in enumerate(zip(ours.losses, theirs.losses, strict=False), start=1):
        if not abs(one - other) <= tolerance * abs(one):
            yield Finding(
                expected=f"the plain loop's loss {one!r}{within(tolerance)}",
                observed=f"{other!r}",
                update=update,
                hint=hint,
            )
            return
    if found := list(updates_differ(ours, theirs, tolerance, hint)):
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


@STAGE.check("accelerate-same-training")
def accelerate_trains_as_the_plain_loop(run: Run) -> Iterator[Finding]:
    """From one state the loop under Accelerate and the plain loop make the same updates: bit for bit on one CPU.

    With several processes, and on GPUs, both are compared in float64, without dropout, at the same rows an update.
    """
    yield from apart(run)


@STAGE.check("accumulation")
def accumulated_micro_batches_are_one_batch(run: Run) -> Iterator[Finding]:
    """Four micro-batches of 2 under accelerator.accumulate give the clipped gradients of one batch of 8.

    Also in the window that is not full at the end of the epoch. In float64, without dropout, by gradient descent: the
    parameters are then the sum of the gradients.
    """
    needs(run, "micro-batches")
    ours, theirs, tolerance = run.replays["one batch"], run.replays["micro-batches"], rounding(run, torch.float64)
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


@STAGE.check("mixed-precision")
def bf16_stays_near_float32(run: Run) -> Iterator[Finding]:
    """Under mixed_precision="bf16" the losses stay near float32's, are not the same, and the weights are float32."""
    needs(run, "bf16")
    expected, observed = run.replays["float32"], run.replays["bf16"]
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


def rounding_band(run: Run, unit: float) -> float:
    """How far a loss may be from float32's where products are rounded by up to ``unit`` of their size.

    Each layer rounds its hidden states about a dozen times. Roundings add up like steps of a random walk:
    sqrt(12 layers) units, and four times that is not reached by chance. The loss of two logits of size 1 moves as much.
    """
    layers = getattr(run.model.config, "num_hidden_layers", 12)
    return 4 * math.sqrt(12 * layers) * unit


def needs(run: Run, replay: str) -> None:
    """For checks of a replay that not every run has.

    Raises:
        NotApplicable: this run has none, with the reason.
    """
    if run.recipe.loop != "accelerate":
        raise NotApplicable(f"about loop accelerate; this recipe has {run.recipe.loop}")
    if run.recipe.processes > 1:
        raise NotApplicable("compared in one process")
    if replay not in run.replays:
        raise NotApplicable(f"not on {run.device.type}: {run.no_bf16 or 'it has no float64'}")


@STAGE.check("trainer-same-defaults")
def trainer_without_its_differences_is_the_plain_loop(run: Run) -> Iterator[Finding]:
    """With the listed differences switched off, Trainer makes the plain loop's updates: bit for bit on a CPU."""
    yield from apart(run)


@STAGE.check("accumulation", severity="warning")
def trainer_accumulates_as_one_batch(run: Run) -> Iterator[Finding]:
    """Under Trainer four accumulated micro-batches of 4 give the gradients of one batch of 16.

    A warning, because no recipe accumulates: it says what gradient_accumulation_steps does on these versions. Wrong for
    all models in transformers 4.46 and 4.47, and from 5.0 on for those whose forward takes any keyword, such as BERT's
    (huggingface/transformers#47688).
    """
    if run.recipe.loop != "trainer":
        raise NotApplicable(f"about loop trainer; this recipe has {run.recipe.loop}")
    if "micro-batches" not in run.replays:
        few = len(run.model_datasets["train"]) < TRAINERS_BATCH
        raise NotApplicable(f"fewer than {TRAINERS_BATCH} rows" if few else f"no float64 on {run.device.type}")
    ours, theirs = run.replays["one batch"], run.replays["micro-batches"]
    one, other = ours.grad_norms[0], theirs.grad_norms[0]
    tolerance = rounding(run, torch.float64)
    if len(theirs.grad_norms) != 1 or not abs(one - other) <= tolerance * abs(one):
        updates = f"{len(theirs.grad_norms)} updates, the first with " if len(theirs.grad_norms) != 1 else ""
        yield Finding(
            expected=f"the gradient of one batch of {TRAINERS_BATCH}{within(tolerance)}",
            observed=f"{updates}a gradient {other / one:.4g} times as large",
            where="Trainer with gradient_accumulation_steps=4",
            hint="On transformers 5 set trainer.model_accepts_loss_kwargs = False, and Trainer divides; 4.46 and 4.47 "
            "never do: use another version.",
        )
    elif not (difference := largest_difference(ours, theirs)) <= tolerance * one:
        yield Finding(
            expected="a gradient in the same direction",
            observed=f"one of the same size in another; the parameters are {difference:.2g} apart",
            where="Trainer with gradient_accumulation_steps=4",
            hint="Compare the rows of the micro-batches with those of the batch.",
        )
