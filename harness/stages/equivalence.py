"""Equivalence: this run's loop and the plain loop are one computation, shown before the updates are spent.

A *replay* is a short training from the state that the run is in, on copies; the run goes on as if there had been none.
"""

from __future__ import annotations

import copy
import inspect
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from statistics import fmean
from typing import Any

import torch
from accelerate import Accelerator
from torch.optim import AdamW, Optimizer
from torch.optim.lr_scheduler import ConstantLR
from torch.utils.data import DataLoader
from tqdm.auto import tqdm
from transformers import PreTrainedModel, Trainer, set_seed

from harness import launch
from harness.findings import Finding, NotApplicable
from harness.loops import accelerated, plain
from harness.loops.adamw import TransformersAdamW
from harness.loops.trainer import quiet, training_arguments
from harness.stages import batches, optimizer, prepare, schedule, train
from harness.stages.chain import Run, Stage, raw_optimizer, unchanged_random_state
from harness.watch.trace import Trace

STAGE = Stage("equivalence", loops=("accelerate", "trainer"))

REPLAYED = 20
"""Updates in a replay."""

WINDOW_ROWS, BATCH, MICRO_BATCH = 21, 8, 2
"""Where accumulation is compared: two windows of four whole micro-batches, and at the end of the epoch one of three,
with 2, 2 and 1 rows."""

MAX_NORM = 0.1
"""Gradients are clipped to this norm there: well below that of a first update, so that it acts."""

BF16_UPDATES = 8


@dataclass
class Replay:
    """What a short training did."""

    losses: list[float] = field(default_factory=list)
    """One for each forward; with several processes the mean over the ranks, whose batches are equally large."""
    gradients: list[dict[str, torch.Tensor]] = field(default_factory=list)
    """As each update used them, by parameter; only where they were asked for."""
    grad_norms: list[float] = field(default_factory=list)
    """The 2-norm over all gradients, as each update used them."""
    parameters: dict[str, torch.Tensor] = field(default_factory=dict)
    """After the last update."""


@dataclass(frozen=True)
class Difference:
    """One thing in which another way to train is not the document's own loop."""

    what: str
    there: str
    by_hand: str
    effect: float
    """The largest difference of any parameter after the replayed updates, where this alone is switched on."""


@STAGE.step_of("accelerate")
def equivalence(run: Run) -> None:
    with unchanged_random_state(), accelerated.separate_state():
        if run.recipe.processes > 1:
            updates = min(planned(run), len(run.model_datasets["train"]) // run.recipe.rows_per_update)
            run.replays["plain"] = replayed(
                twin(
                    run, updates, exact, loop="plain", processes=1, split_batches=False, shuffle=False,
                    batch_size=run.recipe.rows_per_update,
                )
            )  # fmt: skip
            run.replays["accelerate"] = replayed(twin(run, updates, exact, shuffle=False))
        else:
            run.replays["plain"] = replayed(twin(run, planned(run), loop="plain"))
            run.replays["accelerate"] = replayed(twin(run, planned(run)))
            run.replays |= {"one batch": one_batch(run), "micro-batches": micro_batches(run)}
    for precision in ("no", "bf16") if run.recipe.processes == 1 else ():
        with unchanged_random_state(), accelerated.separate_state():
            Accelerator(mixed_precision=precision)  # the state that the twin's own shares
            run.replays[precision] = replayed(twin(run, min(BF16_UPDATES, planned(run)), without_dropout))
    run.apart = measured(run)


@STAGE.step_of("trainer")
def trainer_equivalence(run: Run) -> None:
    with unchanged_random_state():
        run.replays["plain"] = by_hand = replayed(in_fixed_order(twin(run, planned(run), loop="plain")))
        run.replays["trainer"] = replayed(trainer_twin(run))
        run.differences = [
            Difference(what, there, here, largest_difference(by_hand, replayed(trainer_twin(run, **switched_on))))
            for what, there, here, switched_on in settings(run)
        ]
        old = in_fixed_order(twin(run, planned(run), loop="plain"))
        values = {
            name: parameter.default for name, parameter in inspect.signature(TransformersAdamW).parameters.items()
        }
        rebuilt(old, TransformersAdamW(old.model.parameters(), lr=run.recipe.lr))
        run.differences.append(
            Difference(
                "the documents' transformers.AdamW",
                f"epsilon {values['eps']}, decay {values['weight_decay']}",
                f"epsilon {default('eps')}, decay {default('weight_decay')}",
                largest_difference(by_hand, replayed(old)),
            )
        )
    run.apart = measured(run)


def planned(run: Run) -> int:
    """The updates of a replay."""
    return min(REPLAYED, train.planned(run))


# -------------------------------------------------------------------------------------------------------------- twins


def without_dropout(model: PreTrainedModel) -> None:
    """No dropout of any kind while it trains: it stays in eval mode, whatever the loop asks for."""
    model.eval()
    model.train = lambda mode=True: model


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
    other = Run(run.recipe.with_(**recipe), updates)
    other.model_datasets, other.data_collator, other.device = run.model_datasets, run.data_collator, run.device
    other.model = other.prepared_model = copied(run, change)
    for stage in (batches.STAGE, optimizer.STAGE, prepare.STAGE, schedule.STAGE):
        stage.do(other)
    return other


def rebuilt(other: Run, optimizer_: Optimizer) -> None:
    """The twin with another optimizer, and a scheduler for it."""
    other.optimizer = optimizer_
    schedule.STAGE.do(other)


def fixed_order(run: Run) -> DataLoader[Any]:
    """The training rows in the order of the plain loop's first epoch; every replay and every epoch has it."""
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
    **arguments: Any,
) -> Run:
    """A Trainer that starts where the run is, each of its differences to the loop by hand off unless it is named."""
    other = Run(run.recipe, planned(run))
    other.model = other.prepared_model = copied(run)
    pinned(other.model, run.recipe.seed)
    other.trainer = quiet(
        Trainer(
            other.model,
            training_arguments(
                run.recipe, run.scratch.name, **({"eval_strategy": "no", "max_grad_norm": 0.0} | arguments)
            ),
            train_dataset=run.trainer.train_dataset,
            data_collator=run.data_collator,
            processing_class=run.tokenizer,
            optimizers=((adamw or default_adamw(run))(other.model), None),
        )
    )
    other.optimizer = other.trainer.create_optimizer()
    if not own_order:
        other.trainer.get_train_dataloader = lambda: fixed_order(run)
    return other


def default(name: str) -> Any:
    """The value that ``torch.optim.AdamW`` has where none is given."""
    return inspect.signature(AdamW).parameters[name].default


def default_adamw(run: Run, **values: Any) -> Callable[[PreTrainedModel], Optimizer]:
    """The document's ``AdamW(model.parameters(), lr=...)``, with some other values."""
    return lambda model: AdamW(model.parameters(), lr=run.recipe.lr, **values)


def settings(run: Run) -> Iterator[tuple[str, str, str, dict[str, Any]]]:
    """Where Trainer is not the loop by hand: what, its value, the value by hand, and how to switch it on."""
    args, groups = run.trainer.args, raw_optimizer(run.optimizer).param_groups
    yield (
        "gradient clipping (max_grad_norm)",
        f"{args.max_grad_norm}",
        "none",
        {"max_grad_norm": args.max_grad_norm},
    )
    yield (
        "weight decay",
        f"{args.weight_decay}",
        f"{default('weight_decay')}",
        {"adamw": default_adamw(run, weight_decay=args.weight_decay)},
    )
    decayed = set(run.trainer.get_decay_parameter_names(run.model))
    apart = [name for name, _ in run.model.named_parameters() if name not in decayed]

    def in_groups(model: PreTrainedModel) -> Optimizer:
        named = list(model.named_parameters())
        groups: list[dict[str, Any]] = [
            {"params": [p for name, p in named if name in decayed]},
            {"params": [p for name, p in named if name not in decayed], "weight_decay": 0.0},
        ]
        return AdamW(groups, lr=run.recipe.lr)

    yield (
        "parameter groups",
        f"{len(groups)}; {len(apart)} biases and LayerNorms not decayed",
        "1",
        {"adamw": in_groups},
    )
    yield (
        "AdamW's epsilon",
        f"{args.adam_epsilon}",
        f"{default('eps')}",
        {"adamw": default_adamw(run, eps=args.adam_epsilon)},
    )
    fused = bool(groups[0].get("fused"))
    yield ("AdamW's kernel", "fused" if fused else "default", "default", {"adamw": default_adamw(run, fused=fused)})
    yield ("data order", "a sampler seeded by itself", "torch's global generator", {"own_order": True})


# ------------------------------------------------------------------------------------------------------------ replays


def replayed(other: Run) -> Replay:
    """What the twin's loop does."""
    other.progress_bar = tqdm(disable=True)
    set_seed(other.recipe.seed)
    return recorded(other.model, other.optimizer, lambda: train.loop(other))


def recorded(
    model: PreTrainedModel, stepped: Optimizer, loop: Callable[[], None], *, gradients: bool = False
) -> Replay:
    """What a loop does with a model and its optimizer."""
    replay = Replay()

    def keep(*_: Any) -> None:
        named = model.named_parameters()
        replay.gradients.append({name: p.grad.detach().clone() for name, p in named if p.grad is not None})

    handles = [raw_optimizer(stepped).register_step_pre_hook(keep)] if gradients else []
    with Trace(model, stepped, on_event=train.sign_of_life) as trace:
        loop()
    for handle in handles:
        handle.remove()
    losses = [math.nan if each.loss is None else each.loss for each in trace.forwards if each.gradients]
    replay.losses = [fmean(ranks) for ranks in zip(*launch.of_all_ranks(losses), strict=True)]
    replay.grad_norms = [update.grad_norm for update in trace.updates]
    replay.parameters = {name: parameter.detach() for name, parameter in model.named_parameters()}
    return replay


def accumulation_rows(run: Run) -> Any:
    return run.model_datasets["train"].select(range(min(WINDOW_ROWS, len(run.model_datasets["train"]))))


def one_batch(run: Run) -> Replay:
    """The plain loop in batches of 8, clipped, over the first rows, in order."""
    model = copied(run, exact)
    adamw = AdamW(model.parameters(), lr=run.recipe.lr)
    loader: DataLoader[Any] = DataLoader(accumulation_rows(run), batch_size=BATCH, collate_fn=run.data_collator)

    def clips(*_: Any) -> None:
        torch.nn.utils.clip_grad_norm_(model.parameters(), MAX_NORM)

    adamw.register_step_pre_hook(clips)  # before the one that records: it gets the clipped gradients
    constant, bar = ConstantLR(adamw, factor=1.0), tqdm(disable=True)
    return recorded(
        model,
        adamw,
        lambda: plain.train(model, loader, adamw, constant, run.device, bar, num_epochs=1),
        gradients=True,
    )


def micro_batches(run: Run, train_accumulating: Callable[..., None] = accelerated.train_accumulating) -> Replay:
    """The same rows in micro-batches of 2, four of which Accelerate accumulates."""
    with accelerated.separate_state():
        accelerator = Accelerator(gradient_accumulation_steps=BATCH // MICRO_BATCH)
        model = copied(run, exact)
        loader: DataLoader[Any] = DataLoader(
            accumulation_rows(run), batch_size=MICRO_BATCH, collate_fn=run.data_collator
        )
        prepared, loader, adamw = accelerator.prepare(model, loader, AdamW(model.parameters(), lr=run.recipe.lr))
        return recorded(
            model,
            adamw,
            lambda: train_accumulating(accelerator, prepared, loader, adamw, max_norm=MAX_NORM),
            gradients=True,
        )


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


def measured(run: Run) -> dict[str, float]:
    """How far the replays are apart at most: relative to the plain loop's; parameters and bf16's loss as they are."""

    def relative(pairs: Iterator[tuple[float, float]]) -> float:
        return max((abs(ours - theirs) / abs(ours or 1.0) for ours, theirs in pairs), default=0.0)

    ours, theirs = run.replays["plain"], run.replays[run.recipe.loop]
    distances = {
        "updates": float(len(ours.grad_norms)),
        "loss": relative(zip(ours.losses, theirs.losses, strict=False)),
        "gradient norm": relative(zip(ours.grad_norms, theirs.grad_norms, strict=False)),
        "parameters": largest_difference(ours, theirs),
    }
    if "micro-batches" in run.replays:
        windows = zip(run.replays["one batch"].gradients, run.replays["micro-batches"].gradients, strict=False)
        distances["accumulated gradient"] = max(gradient_distance(*gradients) for gradients in windows)
        losses = zip(run.replays["no"].losses, run.replays["bf16"].losses, strict=False)
        distances["loss under bf16"] = max(abs(float32 - bf16) for float32, bf16 in losses)
    return distances


def gradient_distance(ours: dict[str, torch.Tensor], theirs: dict[str, torch.Tensor]) -> float:
    """The 2-norm of the difference, relative to that of the first."""
    difference = torch.nn.utils.get_total_norm([ours[name] - theirs[name] for name in ours]).item()
    return difference / torch.nn.utils.get_total_norm(ours.values()).item()


def apart(run: Run, expected: Replay, observed: Replay) -> Iterator[Finding]:
    """Where two replays differ by more than their arithmetic allows: nothing on one CPU, rounding elsewhere."""
    if run.recipe.processes > 1:
        tolerance = rounding(run, torch.float64)
    else:
        # A GPU sums in an order that varies.
        tolerance = 0.0 if run.device.type == "cpu" else rounding(run, torch.float32)
    for what, ours, theirs in (
        ("loss", expected.losses, observed.losses),
        ("gradient norm", expected.grad_norms, observed.grad_norms),
    ):
        if len(ours) != len(theirs):
            yield Finding(
                expected=f"{len(ours)} updates, as in the plain loop",
                observed=f"{len(theirs)}",
                hint="Each batch makes one update in both loops.",
            )
            return
        for update, (one, other) in enumerate(zip(ours, theirs, strict=True), start=1):
            if not abs(one - other) <= tolerance * abs(one):
                yield Finding(
                    expected=f"{what} {one!r}, as in the plain loop"
                    + (f", within {tolerance:.2g} of it" if tolerance else ""),
                    observed=f"{other!r}",
                    update=update,
                    hint="From here on this loop is another computation: compare the two line by line.",
                )
                return
    # Adam divides by the size of the gradient plus epsilon, so a rounding error weighs most where there is no gradient.
    most = len(expected.grad_norms) * run.recipe.lr
    allowed = most * min(1.0, tolerance * max(expected.grad_norms) / default("eps"))
    if not (observed_difference := largest_difference(expected, observed)) <= allowed:
        yield Finding(
            expected=f"the plain loop's parameters, within {allowed:.2g}",
            observed=f"{observed_difference:.2g} from them",
            update=len(expected.losses),
            hint="Losses and gradients agree, the updates do not: compare optimizer and schedule.",
        )


@STAGE.check("accelerate-same-training")
def accelerate_trains_as_the_plain_loop(run: Run) -> Iterator[Finding]:
    """From one state the loop under Accelerate and the plain loop make the same updates: bit for bit on one CPU.

    With several processes both are compared in float64, without dropout, at the same rows an update.
    """
    yield from apart(run, run.replays["plain"], run.replays["accelerate"])


@STAGE.check("accumulation", otherwise=None)
def accumulated_micro_batches_are_one_batch(run: Run) -> Iterator[Finding]:
    """Four micro-batches of 2 under accelerator.accumulate give the clipped gradients of one batch of 8, also in the
    window that is not full at the end of the epoch."""
    needs(run, "accelerate", "micro-batches")
    expected, observed = run.replays["one batch"], run.replays["micro-batches"]
    if len(expected.gradients) != len(observed.gradients):
        yield Finding(
            expected=f"{len(expected.gradients)} updates",
            observed=f"{len(observed.gradients)}",
            hint="One update for each window: step the optimizer inside accelerator.accumulate(model).",
        )
        return
    tolerance = rounding(run, torch.float64)
    for update, (ours, theirs) in enumerate(zip(expected.gradients, observed.gradients, strict=True), start=1):
        distance = gradient_distance(ours, theirs)
        if not distance <= tolerance:
            yield Finding(
                expected=f"the gradient of one batch, within {tolerance:.2g} of its norm",
                observed=f"{distance:.2g} of its norm apart",
                update=update,
                hint="Weight each loss by its share of the window's rows, and clip where sync_gradients is true.",
            )
            return


@STAGE.check("mixed-precision")
def bf16_stays_near_float32(run: Run) -> Iterator[Finding]:
    """Under mixed_precision="bf16" the losses stay near float32's, are not the same, and the weights are float32."""
    needs(run, "accelerate", "bf16")
    expected, observed = run.replays["no"], run.replays["bf16"]
    band = bf16_band(run)
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


def bf16_band(run: Run) -> float:
    """How far a loss may be from float32's under bf16.

    Each layer rounds its hidden states about a dozen times, each time by up to u = 2^-8 of their size. Roundings add up
    like steps of a random walk: sqrt(12 layers) u, and four times that is not reached by chance. The loss of two logits
    of size 1 moves as much.
    """
    layers = getattr(run.model.config, "num_hidden_layers", 12)
    return 4 * math.sqrt(12 * layers) * torch.finfo(torch.bfloat16).eps / 2


def needs(run: Run, loop: str, replay: str) -> None:
    if run.recipe.loop != loop:
        raise NotApplicable(f"about loop {loop}; this recipe has {run.recipe.loop}")
    if replay not in run.replays:
        raise NotApplicable("compared in one process")


@STAGE.check("trainer-same-defaults")
def trainer_without_its_differences_is_the_plain_loop(run: Run) -> Iterator[Finding]:
    """With the listed differences switched off, Trainer makes the plain loop's updates: bit for bit on a CPU."""
    yield from apart(run, run.replays["plain"], run.replays["trainer"])
