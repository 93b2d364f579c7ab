"""Prepare: Accelerate takes dataloaders, model and optimizer over (document "Supercharge your training loop")."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.optimizer import AcceleratedOptimizer

from harness import launch
from harness.compat import split_batches
from harness.documented_run.claims import claim
from harness.documented_run.stages.chain import RECIPE_RESPECTED, Run, Stage
from harness.findings import Finding, expect
from harness.torch_objects import held_by, raw_optimizer

STAGE = Stage("prepare", loops=("accelerate",))

GRADIENT_ROUNDING = 1e-5
"""How far two backward passes over one batch may be apart, relative to the largest gradient: nothing on a CPU."""


@STAGE.step
def prepare(run: Run) -> None:
    run.accelerator = Accelerator(**split_batches(run.recipe.split_batches))
    run.train_dl, run.eval_dl, run.prepared_model, run.optimizer = run.accelerator.prepare(
        run.train_dataloader, run.eval_dataloader, run.model, run.optimizer
    )
    run.device = run.accelerator.device


@STAGE.check(claim("accelerate-any-setup"), fault="Another number of processes trains than was asked for.")
def as_many_processes_as_asked(run: Run) -> Iterator[Finding]:
    """As many processes train as were asked for."""
    observed, expected = run.accelerator.num_processes, run.recipe.processes
    fewer = launch.fewer_than_asked()
    if observed != expected or fewer:
        yield Finding(
            expected="several processes" if fewer else f"{expected}",
            observed=f"{observed}, {run.accelerator.distributed_type}",
            where="Accelerator().num_processes",
            hint=fewer or "Ask for them with --processes N, or start them with torchrun --nproc-per-node N.",
        )


@STAGE.check(RECIPE_RESPECTED, fault="The accelerator does not compute in float32, or accumulates gradients.")
def computes_as_the_recipe_says(run: Run) -> Iterator[Finding]:
    """The accelerator computes in float32 and accumulates nothing, whatever the environment would have."""
    accelerator = run.accelerator
    for name, expected in (("mixed_precision", "no"), ("gradient_accumulation_steps", 1)):
        yield from expect(
            expected,
            getattr(accelerator, name),
            of=name,
            where="Accelerator()",
            hint="It comes from the environment (ACCELERATE_*), where accelerate config or launch has put it.",
        )


ACCELERATE_PREPARE = claim("accelerate-prepare")


@STAGE.check(ACCELERATE_PREPARE, fault="prepare returned something in another place, or over other data.")
def wraps_what_it_was_given(run: Run) -> Iterator[Finding]:
    """Each thing comes back in its place, wrapped: the dataloaders over their own data, the model, the optimizer."""
    optimizer = run.optimizer
    wrapped = {
        "train_dl": run.train_dl.dataset is run.train_dataloader.dataset,
        "eval_dl": run.eval_dl.dataset is run.eval_dataloader.dataset,
        "model": run.accelerator.unwrap_model(run.prepared_model) is run.model,
        "optimizer": isinstance(optimizer, AcceleratedOptimizer)
        and isinstance(raw_optimizer(optimizer), torch.optim.Optimizer),
    }
    for name, right in wrapped.items():
        if not right:
            yield Finding(
                expected=f"{name} from the {name} that was given",
                observed=f"{type(getattr(run, name if name != 'model' else 'prepared_model')).__name__} of another",
                where=name,
                hint="Unpack what prepare returns in the order in which it was given, and use that from then on.",
            )


@STAGE.check(ACCELERATE_PREPARE, fault="The optimizer holds other parameters than those of the model that is trained.")
def keeps_the_optimizers_parameters(run: Run) -> Iterator[Finding]:
    """The optimizer still holds the parameters of the model that is trained."""
    held = {id(parameter) for parameter in held_by(run.optimizer)}
    lost = [name for name, p in run.prepared_model.named_parameters() if p.requires_grad and id(p) not in held]
    if lost:
        yield Finding(
            expected="every parameter of the prepared model in the prepared optimizer",
            observed=f"{len(lost)} are not",
            where=lost[0],
            hint="Give prepare the model and its optimizer in one call, and build the optimizer from that model.",
        )


@STAGE.check(claim("accelerate-device"), fault="The model, or a part of it, is not on accelerator.device.")
def model_is_on_the_accelerators_device(run: Run) -> Iterator[Finding]:
    """The whole model is on accelerator.device; nobody called .to(device)."""
    expected = run.accelerator.device.type
    observed = {tensor.device.type for tensor in run.prepared_model.state_dict().values()}
    yield from expect(
        {expected}, observed, hint="Call the model that prepare returned, and do not switch device placement off."
    )


@STAGE.check(claim("accelerate-batches"), fault="A batch does not arrive on accelerator.device.")
def batches_arrive_on_the_device(run: Run) -> Iterator[Finding]:
    """A batch arrives on accelerator.device without being moved."""
    expected = run.accelerator.device.type
    for name, loader in (("train_dl", run.train_dl), ("eval_dl", run.eval_dl)):
        observed = {values.device.type for values in next(iter(loader)).values()}
        yield from expect({expected}, observed, where=name, hint="Go through the dataloader that prepare returned.")


@STAGE.check(claim("accelerate-length"), fault="A process does not get its share of the batches.")
def an_epoch_has_as_many_batches_as_it_takes(run: Run) -> Iterator[Finding]:
    """A process gets its share of the batches: as many as it takes for all rows, the last ones filled up."""
    for name, loader, before in (
        ("train_dl", run.train_dl, run.train_dataloader),
        ("eval_dl", run.eval_dl, run.eval_dataloader),
    ):
        expected = -(-len(before.dataset) // run.recipe.rows_per_update)  # type: ignore[arg-type]
        yield from expect(
            expected,
            len(loader),
            of=f"batches of {run.recipe.rows_per_update} rows over all processes:",
            where=f"len({name})",
            hint="Prepare each dataloader once; a schedule planned with another length does not end at 0.",
        )


@STAGE.check(
    claim("accelerate-backward"), fault="accelerator.backward(loss) leaves other gradients than loss.backward()."
)
def backward_gives_the_same_gradients(run: Run) -> Iterator[Finding]:
    """accelerator.backward(loss) leaves the gradients that loss.backward() leaves."""
    expected = gradients(run, torch.Tensor.backward)
    observed = gradients(run, run.accelerator.backward)
    yield from other_gradients(observed, expected, "accelerator.backward(loss)", "loss.backward()")


ACCUMULATED_OVER = 4
"""Micro-batches of a window in which the scaled loss is looked at; a power of 2, so that dividing rounds nothing."""


@STAGE.check(
    "accelerate-backward-scales",
    fault="With gradient_accumulation_steps=4 accelerator.backward(loss) does not leave a quarter of the gradients.",
)
def backward_divides_by_the_micro_batches(run: Run) -> Iterator[Finding]:
    """With gradient_accumulation_steps=4 accelerator.backward(loss) leaves a quarter of the gradients."""
    accelerator = run.accelerator
    whole = gradients(run, torch.Tensor.backward)
    expected = {name: gradient / ACCUMULATED_OVER for name, gradient in whole.items()}
    steps = accelerator.gradient_accumulation_steps
    accelerator.gradient_accumulation_steps = ACCUMULATED_OVER
    try:
        observed = gradients(run, accelerator.backward)
    finally:
        accelerator.gradient_accumulation_steps = steps
    yield from other_gradients(
        observed, expected, f"accelerator.backward(loss), {ACCUMULATED_OVER} micro-batches", "a quarter of them"
    )


def gradients(run: Run, backward: Callable[[torch.Tensor], Any]) -> dict[str, torch.Tensor]:
    """What a backward pass of the first validation batch leaves, by parameter; the run has none again afterwards.

    With several processes every rank must ask for them.
    """
    model = run.prepared_model
    modes = {module: module.training for module in model.modules()}
    model.eval()  # no dropout
    try:
        backward(model(**next(iter(run.eval_dl))).loss)
        return {name: p.grad.detach().clone() for name, p in run.model.named_parameters() if p.grad is not None}
    finally:
        run.model.zero_grad(set_to_none=True)
        for module, mode in modes.items():
            module.training = mode


def other_gradients(
    observed: dict[str, torch.Tensor], expected: dict[str, torch.Tensor], where: str, whose: str
) -> Iterator[Finding]:
    """Gradients that are further apart than the order of their sums on a GPU can bring them."""
    largest = max((gradient.abs().max().item() for gradient in expected.values()), default=0.0)
    apart = {
        name: (observed[name] - gradient).abs().max().item() if name in observed else largest
        for name, gradient in expected.items()
    }
    wrong = [name for name, difference in apart.items() if not difference <= GRADIENT_ROUNDING * largest]
    if wrong or observed.keys() != expected.keys():
        norms = [
            math.sqrt(sum(gradient.double().square().sum().item() for gradient in each.values()))
            for each in (observed, expected)
        ]
        yield Finding(
            expected=f"the gradients of {whose}, norm {norms[1]:.6g}",
            observed=f"norm {norms[0]:.6g}, {len(wrong)} of {len(expected)} tensors differ",
            where=f"{where}, {wrong[0]}" if wrong else where,
            hint="Call accelerator.backward(loss) once, on the loss itself; it alone divides by the micro-batches.",
        )


ACCELERATE_LR = claim("accelerate-lr")


@STAGE.check(ACCELERATE_LR, fault="The learning rate is not the one of the document's Accelerate script.")
def documented_learning_rate(run: Run) -> Iterator[Finding]:
    """The learning rate is the one of the document's Accelerate script."""
    expected = ACCELERATE_LR.expected
    observed = {group["lr"] for group in run.optimizer.param_groups}
    yield from expect({expected}, observed, hint="Give AdamW lr=3e-5.")
