"""Optimizer: AdamW over all parameters (document "Prepare for training")."""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch.optim import AdamW

from harness.compat import adamw_classes
from harness.documented_run.claims import DOCUMENTED, claim
from harness.documented_run.loops.adamw import torch_adamw_update, transformers_adamw_update
from harness.documented_run.stages.chain import RECIPE_RESPECTED, Run, Stage
from harness.findings import Finding, NotApplicable, expect
from harness.torch_objects import held_by, raw_optimizer

STAGE = Stage("optimizer")


@STAGE.step
def optimizer(run: Run) -> None:
    # The documents import AdamW from transformers, which removed it in 4.50 for torch's.
    run.optimizer = AdamW(run.model.parameters(), lr=run.recipe.lr)


@STAGE.step_of("trainer")
def trainers_optimizer(run: Run) -> None:
    run.optimizer = run.trainer.create_optimizer()


@STAGE.check(claim("adamw"), fault="The optimizer is not AdamW.")
def is_adamw(run: Run) -> Iterator[Finding]:
    """The optimizer is AdamW: Adam with decoupled weight decay."""
    if not isinstance(run.optimizer, adamw_classes()):
        yield Finding(
            expected="torch.optim.AdamW",
            observed=f"{type(run.optimizer).__module__}.{type(run.optimizer).__qualname__}",
            hint="Use torch.optim.AdamW; Adam's weight_decay is a different regularisation.",
        )


@STAGE.check(
    claim("lr"),
    fallback_invariant=RECIPE_RESPECTED,
    fault="A parameter group starts at another learning rate than the recipe's.",
)
def learning_rate(run: Run) -> Iterator[Finding]:
    """Every parameter group starts at the recipe's learning rate."""
    for number, group in enumerate(run.optimizer.param_groups):
        yield from expect(
            run.recipe.lr,
            group["lr"],
            where=f"parameter group {number}",
            hint="Give AdamW lr; its own default is 1e-3.",
        )


SUMMARY_LR = claim("summary-lr")


@STAGE.check(SUMMARY_LR)
def the_printed_summary_is_another_training(run: Run) -> Iterator[Finding]:
    """At the 3e-5 of the printed summary an update is three fifths of one at the 5e-5 of the loop above it."""
    printed, above = SUMMARY_LR.expected, DOCUMENTED.lr
    optimizer = raw_optimizer(run.optimizer)
    for number, group in enumerate(optimizer.param_groups):
        moved = {lr: abs(updated(type(optimizer), group | {"lr": lr}, (0.5,), 0.0)) for lr in (printed, above)}
        if not math.isclose(moved[printed], printed / above * moved[above], rel_tol=1e-9) or not moved[printed]:
            yield Finding(
                expected=f"{printed / above * moved[above]:.6g} at {printed}, {moved[above]:.6g} at {above}",
                observed=f"{moved[printed]:.6g} at {printed}",
                where=f"parameter group {number}",
                hint="The optimizer does not do what its learning rate says: a schedule would not reach it either.",
            )


def updated(kind: type[Any], values: dict[str, Any], gradients: Iterable[float], start: float) -> float:
    """What an optimizer of this kind makes of one number, in float64, given these gradients."""
    parameter = torch.nn.Parameter(torch.tensor([start], dtype=torch.float64))
    taken = inspect.signature(kind).parameters.keys() - {"params"}
    stepped = kind([parameter], **{name: value for name, value in values.items() if name in taken})
    for gradient in gradients:
        parameter.grad = torch.tensor([gradient], dtype=torch.float64)
        stepped.step()
    return float(parameter.item())


@STAGE.check(claim("adamw-defaults"), fault="The optimizer has values other than AdamW's defaults.")
def other_values_are_defaults(run: Run) -> Iterator[Finding]:
    """Everything but the learning rate is AdamW's default."""
    defaults = {
        name: parameter.default
        for name, parameter in inspect.signature(AdamW).parameters.items()
        if name not in ("params", "lr")
    }
    for number, group in enumerate(run.optimizer.param_groups):
        for name, expected in defaults.items():
            yield from expect(
                expected,
                group.get(name),
                of=name,
                where=f"parameter group {number}",
                hint="The documents set the learning rate only; a different value gives a different run.",
            )


@STAGE.check(claim("adamw-semantics"), fault="Given known gradients, the optimizer does not update as AdamW does.")
def updates_as_adamw(run: Run) -> Iterator[Finding]:
    """Given known gradients, the optimizer's class updates as AdamW: bias-corrected, with decoupled weight decay."""
    gradients, start = (0.5, -2.0, 0.25), 1.0
    optimizer = raw_optimizer(run.optimizer)
    for number, group in enumerate(optimizer.param_groups):
        if not {"betas", "eps", "weight_decay"} <= group.keys():
            raise NotApplicable("the optimizer is no Adam or AdamW")
        # A learning rate and decay large enough for each term to show; the other values are the group's own.
        values = {"lr": 0.1, "betas": group["betas"], "eps": group["eps"], "weight_decay": 0.3}
        observed = updated(type(optimizer), group | values, gradients, start)
        of_transformers = isinstance(optimizer, adamw_classes()[1:])
        reference = transformers_adamw_update if of_transformers else torch_adamw_update
        expected = reference(
            start, gradients, lr=values["lr"], betas=values["betas"], eps=values["eps"], decay=values["weight_decay"]
        )
        if not math.isclose(observed, expected, rel_tol=1e-9):
            yield Finding(
                expected=f"{start} becomes {expected:.9g} with the gradients {gradients}, lr 0.1 and weight decay 0.3",
                observed=f"{observed:.9g}",
                where=f"parameter group {number}",
                hint="Use torch.optim.AdamW; this class corrects no bias, or adds the decay to the gradient.",
            )


@STAGE.check(
    claim("all-parameters"), fault="The optimizer does not hold each of the model's trainable parameters once."
)
def holds_every_parameter_once(run: Run) -> Iterator[Finding]:
    """The optimizer holds exactly the model's trainable parameters, the same tensors, each once."""
    held = [id(parameter) for parameter in held_by(run.optimizer)]
    trainable = {id(p): name for name, p in run.model.named_parameters() if p.requires_grad}
    forgotten = [name for key, name in trainable.items() if key not in held]
    strangers = [key for key in held if key not in trainable]
    if forgotten or strangers or len(held) != len(set(held)):
        yield Finding(
            expected=f"the model's {len(trainable)} trainable parameters, each once",
            observed=f"{len(held)}: {len(forgotten)} of the model's are missing, {len(strangers)} are not the model's",
            where=forgotten[0] if forgotten else None,
            hint="Build the optimizer from model.parameters() after the model has its final form and device.",
        )
