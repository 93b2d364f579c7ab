from __future__ import annotations

from collections import Counter

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from harness.torch_objects import held_by
from harness.watch.check import Check
from harness.watch.events import Backward
from harness.watch.monitor import Monitor

MIN_UPDATES = 4
"""Updates that are looked at from which on it is no accident. Neither half nor double of it changes a verdict of the
corpus."""

FIRST = 8
"""Passes of a model that are all looked at: it may be the second that is trained. Neither half nor double of it changes
a verdict of the corpus."""


class FrozenNormDrifts(Check):
    """Batch normalisations whose weights are frozen are in train mode: their running statistics go on changing.

    ## Why is this a bug?
    `requires_grad_(False)` keeps weights as they are, but not the running mean and variance, which are not parameters:
    every batch in train mode updates them. A frozen backbone is then not the same at the end as at the beginning, and
    its features in evaluation are not those that the head was trained on.

    ## What to do
    Call `backbone.eval()` after every `model.train()`.

    ## When it is right
    Batch normalisations of a network that is frozen only while another one makes its step are not reported, nor are
    those of a copy that follows the trained network (a momentum encoder), nor those in eval mode. Ignore this warning
    if the statistics should adapt to another domain.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.BatchNorm2d.html
    """

    status = "new"
    needs = "batch normalisation with frozen weights"
    in_windows = "first"
    severity = "warning"

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.updates = 0
        self.passes: Counter[int] = Counter()
        """Of each model, by its number."""
        self.steps: dict[int, int] = {}
        """Of the optimizers that hold them, at the first of these updates, by their ids."""
        self.began: dict[int, torch.Tensor] = {}
        """Their weights then: those of a copy that follows another network change."""

    def on_backward(self, event: Backward) -> None:
        if event.inside_step or self.updates >= MIN_UPDATES:
            return
        reached = [each for each in event.forwards if each.number in event.reached]
        for each in reached:
            self.passes[self.monitor.number_of(each.model)] += 1
        if not self.monitor.is_sampled() and all(self.passes[self.monitor.number_of(f.model)] > FIRST for f in reached):
            return
        frozen = {id(m): m for each in reached for m in each.model.modules() if _is_frozen(m)}
        if not frozen:
            return
        self.looked = True
        drifting = [m for m in frozen.values() if m.training and m.track_running_stats]
        weights = {id(m.weight) for m in drifting}
        holding = {
            id(optimizer): seen.steps
            for optimizer, seen in list(self.monitor.optimizers.items())
            if not weights.isdisjoint(map(id, held_by(optimizer)))
        }
        if not self.updates:
            self.began = {id(m): _weight(m).detach().clone() for m in drifting}
        drifting = [m for m in drifting if id(m) in self.began and torch.equal(_weight(m), self.began[id(m)])]
        if not drifting or any(self.steps.setdefault(o, steps) != steps for o, steps in holding.items()):
            self.updates, self.steps = 0, {}  # frozen for a step of another network, and stepped again
            return
        self.updates += 1
        if self.updates == MIN_UPDATES:
            self.found(
                expected="frozen batch normalisations in eval mode",
                observed=f"{len(drifting)} of {len(frozen)} frozen ones are in train mode, and take each batch into "
                "their running statistics",
                where=reached[-1].where,
                update=self.monitor.update,
            )


def _is_frozen(module: nn.Module) -> bool:
    return isinstance(module, _BatchNorm) and module.affine and not module.weight.requires_grad


def _weight(module: nn.Module) -> torch.Tensor:
    return module.get_parameter("weight")
