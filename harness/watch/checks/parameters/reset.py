from __future__ import annotations

from dataclasses import dataclass
from weakref import WeakKeyDictionary

import torch
from torch.optim import Optimizer

from harness.watch.check import Check
from harness.watch.events import Load, Step, StepBegins
from harness.watch.facts.tensor_updates import ROUNDINGS, with_gradients
from harness.watch.monitor import Monitor


@dataclass
class Followed:
    """The smallest tensor of an optimizer."""

    parameter: torch.Tensor
    start: torch.Tensor
    """What it was before the first update."""
    moved: torch.Tensor | None = None
    """Whether the latest step of an optimizer left another: a tensor, so that no step waits for a device."""


class Reset(Check):
    """Parameters are set back to what they were before the first update.

    ## Why is this a bug?
    What the updates learned is undone each time. The loss still moves a little between two resets, and the run ends
    with a model that has seen one update, or none.

    ## What to do
    Look at what writes to the parameters between updates: reloading a checkpoint, an average that is copied back, an
    initialisation that runs again.

    ## When it is right
    Loading a state with load_state_dict is not reported: going back to the start before another trial is done that way.
    Nor is an average of the weights that is kept beside the model, or a step that goes back itself, as those by the
    sign of the gradient do (Lion, signSGD).
    """

    id = "parameters::reset"
    needs = "second update"
    formerly = ("effect::updates-are-kept",)
    explains = ("parameters::modified-outside-optimizer",)

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.followed: WeakKeyDictionary[Optimizer, Followed] = WeakKeyDictionary()

    def on_step_begins(self, event: StepBegins) -> None:
        if not event.sampled:
            return
        trained = [p for p, _ in with_gradients(event.optimizer)]
        followed = self.followed.get(event.optimizer)
        self.looked |= followed is not None and _has_moved(followed)
        if followed is None:
            if trained and event.number == 1:
                smallest = min(trained, key=lambda p: p.numel())
                self.followed[event.optimizer] = Followed(smallest, smallest.detach().clone())
        elif _has_moved(followed) and any(p is followed.parameter for p in trained) and _is_set_back(followed, event):
            self.found(
                expected="parameters as the updates before left them",
                observed="a tensor is what it was before the first update",
                where=event.where,
                update=event.update,
            )

    def on_step(self, event: Step) -> None:
        for followed in self.followed.values():  # optimizers may share it
            followed.moved = (followed.parameter.detach() != followed.start).any()

    def on_load(self, event: Load) -> None:
        self.followed.clear()


def _has_moved(followed: Followed) -> bool:
    return followed.moved is not None and bool(followed.moved)


def _is_set_back(followed: Followed, event: StepBegins) -> bool:
    """Whether it is what it was, with a gradient and a learning rate by which it had moved."""
    parameter, start = followed.parameter, followed.start
    lr = max(float(group.get("lr") or 0.0) for group in event.optimizer.param_groups)
    moves = lr > ROUNDINGS * torch.finfo(start.dtype).eps * max(1.0, start.abs().max().item())
    return torch.equal(parameter, start) and moves and parameter.grad is not None and bool(parameter.grad.any())
