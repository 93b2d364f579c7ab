from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import torch
from torch.optim import Optimizer

from harness.watch.check import Check
from harness.watch.events import End, Load, Step, StepBegins
from harness.watch.facts.parameters import Parameters
from harness.watch.facts.tensor_updates import ROUNDINGS, with_gradients
from harness.watch.monitor import Monitor

KEPT = 64
"""Optimizers whose tensor was set back, up to the end, or to the next load. Neither half nor double of it changes a
verdict of the corpus."""


@dataclass
class SetBack:
    """A tensor that was found to be what it was before the first update."""

    name: str
    where: str | None
    update: int
    steps: int
    """Of the optimizer, up to now."""
    since: torch.Tensor
    """Steps since the latest that found it so: a tensor, so that no step waits for a device."""

    @property
    def goes_on(self) -> bool:
        """Whether that was in the later half, too: the first steps may be taken back until a smaller one is found."""
        return 2 * int(self.since) <= self.steps


@dataclass
class Followed:
    """The smallest tensor of an optimizer."""

    parameter: torch.Tensor
    start: torch.Tensor
    """What it was before the first update."""
    moved: torch.Tensor | None = None
    """Whether the latest step of an optimizer left another: a tensor, so that no step waits for a device."""
    back: SetBack | None = None


class Reset(Check):
    """Parameters are set back to what they were before the first update.

    ## Why is this a bug?
    Each reset undoes what the updates learned. The loss still moves a little between two resets, and the run ends with
    a model that has seen one update, or none.

    ## What to do
    Look at what writes to the parameters between updates: reloading a checkpoint, an average that is copied back, an
    initialisation that runs again.

    ## When it is right
    Loading a state with load_state_dict is not reported: that is how a script goes back to the start before another
    trial. Neither is an average of the weights that is kept separately from the model, a step that goes back by itself,
    as steps by the sign of the gradient do (Lion, signSGD), or one at the beginning that is taken back until the loss
    gets smaller.
    """

    needs = "second update"
    formerly = ("effect::updates-are-kept",)
    explains = ("parameters::modified-outside-optimizer",)

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.parameters = monitor.fact(Parameters)
        self.followed: WeakKeyDictionary[Optimizer, Followed] = WeakKeyDictionary()
        self.back: deque[SetBack] = deque(maxlen=KEPT)

    def on_step_begins(self, event: StepBegins) -> None:
        followed = self.followed.get(event.optimizer)
        if followed is not None and followed.back is not None:
            followed.back.steps = event.number
            followed.back.since = (followed.back.since + 1) * (followed.parameter.detach() != followed.start).any()
        elif event.sampled:
            self._look(followed, event)

    def _look(self, followed: Followed | None, event: StepBegins) -> None:
        trained = [p for p, _ in with_gradients(event.optimizer)]
        self.looked |= followed is not None and _has_moved(followed)
        if followed is None:
            if trained and event.number == 1:
                smallest = min(trained, key=lambda p: p.numel())
                self.followed[event.optimizer] = Followed(smallest, smallest.detach().clone())
        elif _has_moved(followed) and any(p is followed.parameter for p in trained) and _is_set_back(followed, event):
            name = self.parameters.name_of(followed.parameter)
            since = torch.zeros((), device=followed.start.device)
            followed.back = SetBack(name, event.where, event.update, event.number, since)
            self.back.append(followed.back)

    def on_step(self, event: Step) -> None:
        for followed in self.followed.values():  # optimizers may share it
            followed.moved = (followed.parameter.detach() != followed.start).any()

    def on_load(self, event: Load) -> None:
        self._judge()
        self.followed.clear()

    def on_end(self, event: End) -> None:
        self._judge()

    def _judge(self) -> None:
        for back in self.back:
            if back.goes_on:
                self.found(
                    expected="parameters as the updates before left them",
                    observed=f"{back.name} is what it was before the first update",
                    where=back.where,
                    update=back.update,
                )
        self.back.clear()


def _has_moved(followed: Followed) -> bool:
    return followed.moved is not None and bool(followed.moved)


def _is_set_back(followed: Followed, event: StepBegins) -> bool:
    """Whether it is what it was, with a gradient and a learning rate by which it had moved."""
    parameter, start = followed.parameter, followed.start
    lr = max(float(group.get("lr") or 0.0) for group in event.optimizer.param_groups)
    moves = lr > ROUNDINGS * torch.finfo(start.dtype).eps * max(1.0, start.abs().max().item())
    return torch.equal(parameter, start) and moves and parameter.grad is not None and bool(parameter.grad.any())
