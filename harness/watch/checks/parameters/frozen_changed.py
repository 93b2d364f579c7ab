from __future__ import annotations

from collections.abc import Sequence
from weakref import WeakKeyDictionary

import torch
from torch import nn

from harness.torch_objects import held_by, is_clamped
from harness.watch.check import Check
from harness.watch.events import Backward, Load, Step, StepBegins
from harness.watch.facts.parameters import Parameters
from harness.watch.monitor import Monitor

OF_A_MODEL, OF_A_STEP = 2, 4
"""Frozen tensors that are copied to be compared later: few, because they may be large. A guess."""

MAX_REST = 1e-2
"""Largest part of a change that scaling leaves unexplained, which rounding may make. Neither half nor double of it
changes a verdict of the corpus."""

Kept = list[tuple[torch.Tensor, torch.Tensor]]
"""Tensors, each with a copy of what it was."""


class FrozenChanged(Check):
    """Parameters that are frozen change.

    ## Why is this a bug?
    Everyone expects frozen parameters to stay as they were loaded. But an optimizer still updates a parameter that has
    a gradient left, even one of 0, through its momentum and weight decay; and a loop over `model.parameters()` writes
    to all of them.

    ## What to do
    Clear its gradient (p.grad = None) when you freeze a parameter, or take it out of the optimizer.

    Code that writes to parameters by hand should leave out those whose `requires_grad` is False.

    ## When it is right
    Parameters that are unfrozen again and trained from then on, and states that are loaded into frozen modules, are not
    reported. Neither are frozen parameters that keep a state (averages of other weights, running statistics).
    """

    needs = "frozen parameters"
    in_windows = "all"
    formerly = ("effect::frozen-stay",)
    explains = ("parameters::modified-outside-optimizer",)

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.parameters = monitor.fact(Parameters)
        self.of_models: WeakKeyDictionary[nn.Module, Kept] = WeakKeyDictionary()
        """Of each model that is trained a few frozen tensors."""
        self.of_step: Kept = []
        """Frozen tensors of the optimizer that steps which still have a gradient."""

    def on_backward(self, event: Backward) -> None:
        if event.inside_step or not self.monitor.is_sampled():
            return
        for forward in event.forwards:
            if forward.number in event.reached:
                self._compare(forward.model, event)

    def _compare(self, model: nn.Module, event: Backward) -> None:
        """Frozen parameters of a model that is trained stay as they are, whoever might write to them."""
        before = self.of_models.get(model)
        if before is None:
            frozen = [p for p in model.parameters() if not p.requires_grad and p.numel()]
            apart = max(1, len(frozen) // OF_A_MODEL)
            self.of_models[model] = _copies(sorted(frozen, key=lambda p: p.numel())[::apart][:OF_A_MODEL])
            return
        still = [(p, value) for p, value in before if not p.requires_grad]
        self.looked |= bool(still)
        written = [p for p, value in still if _written_as_all_are(value, p)]
        if written:
            self.found(
                expected="frozen parameters that stay as they are",
                observed=f"scaled or clipped between two updates, though frozen: {self._shown(written)}",
                where=event.where,
                update=self.monitor.update,
                hint="Leave frozen parameters out of what is written by hand.",
            )
        self.of_models[model] = _copies([p for p, _ in still])

    def on_step_begins(self, event: StepBegins) -> None:
        self.of_step = []
        if event.sampled:
            self.looked |= any(not p.requires_grad for p in held_by(event.optimizer))
            stale = [p for p in held_by(event.optimizer) if not p.requires_grad and p.grad is not None]
            self.of_step = _copies(stale[:OF_A_STEP])

    def on_step(self, event: Step) -> None:
        changed = [p for p, before in self.of_step if not torch.equal(p, before)]
        self.of_step = []
        if changed:
            self.found(
                expected="frozen parameters that stay as they are",
                observed=f"the optimizer changed {self._shown(changed)}, frozen while a gradient was left",
                where=event.where,
                update=event.update,
            )

    def _shown(self, tensors: Sequence[torch.Tensor]) -> str:
        return self.parameters.shown({id(p) for p in tensors})

    def on_load(self, event: Load) -> None:
        self.of_models.clear()


def _written_as_all_are(before: torch.Tensor, now: torch.Tensor) -> bool:
    """Whether a tensor was scaled or clipped, which needs nothing but itself.

    An average of other weights, running statistics or a code book is kept as frozen parameters too, and is meant to
    change.
    """
    before, now = before.detach().double().flatten(), now.detach().double().flatten()
    change = now - before
    if before.shape != now.shape or before.numel() < 2 or not change.any() or not before.any():
        return False  # of one number any change is a multiple
    if is_clamped(before, now):
        return True
    along = torch.dot(change, before) / torch.dot(before, before)
    return bool((change - along * before).norm() <= MAX_REST * change.norm())


def _copies(tensors: Sequence[torch.Tensor]) -> Kept:
    return [(p, p.detach().clone()) for p in tensors]
