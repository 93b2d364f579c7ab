"""Where Trainer is not the document's own loop, and what each difference does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch.optim import AdamW, Optimizer
from transformers import PreTrainedModel

from harness.documented_run.loops.adamw import TransformersAdamW
from harness.documented_run.stages import schedule
from harness.documented_run.stages.chain import Run
from harness.documented_run.stages.replays.replays import replayed
from harness.documented_run.stages.replays.results import Replay
from harness.documented_run.stages.replays.tolerances import largest_difference
from harness.documented_run.stages.replays.twins import default_adamw, in_fixed_order, plain_twin, trainer_twin
from harness.findings import DOCUMENTED_ADAMW, Difference
from harness.torch_objects import raw_optimizer


def measured_differences(run: Run, by_hand: Replay) -> list[Difference]:
    """Each difference with what it alone does: it is switched on in a Trainer, or in the loop by hand."""
    found = [
        Difference(what, there, here, largest_difference(by_hand, replayed(trainer_twin(run, **switched_on))))
        for what, there, here, switched_on in trainer_differences(run)
    ]
    then = plain_twin(run)
    then.optimizer = TransformersAdamW(then.model.parameters(), lr=run.recipe.lr)
    schedule.STAGE.do(then)
    group, now = then.optimizer.param_groups[0], AdamW(then.model.parameters()).defaults
    documented = Difference(
        DOCUMENTED_ADAMW,
        f"epsilon {group['eps']}, decay {group['weight_decay']}",
        f"epsilon {now['eps']}, decay {now['weight_decay']}",
        largest_difference(by_hand, replayed(in_fixed_order(then))),
    )
    return [*found, documented]


def trainer_differences(run: Run) -> Iterator[tuple[str, str, str, dict[str, Any]]]:
    """Where Trainer differs from the plain loop: what, its value, the value by hand, and how to switch it on."""
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
        not_decayed = {names[id(parameter)] for group in groups[1:] for parameter in group["params"]}

        def in_groups(model: PreTrainedModel) -> Optimizer:
            named = list(model.named_parameters())
            parts: list[dict[str, Any]] = [
                {"params": [p for name, p in named if name not in not_decayed]},
                {"params": [p for name, p in named if name in not_decayed], "weight_decay": 0.0},
            ]
            return AdamW(parts, lr=run.recipe.lr)

        there = f"{len(groups)}; {len(not_decayed)} tensors not decayed"
        yield "parameter groups", there, "1", {"adamw": in_groups}
    yield "data order", "a sampler seeded by itself", "torch's global generator", {"own_order": True}
