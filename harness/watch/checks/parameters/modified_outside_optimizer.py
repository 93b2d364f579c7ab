from __future__ import annotations

from weakref import WeakKeyDictionary

import torch
from torch.optim import Optimizer

from harness.torch_objects import held_by, is_clamped
from harness.watch.check import Check
from harness.watch.events import Backward, Load, Step, StepBegins
from harness.watch.facts.parameters import Parameters
from harness.watch.monitor import Monitor

RELATIVE, ABSOLUTE = 1e-5, 1e-7
"""Largest change that copying and converting may make, as a share of the largest element, and in itself. By reasoning:
some roundings of float32."""


class ModifiedOutsideOptimizer(Check):
    """Parameters are changed between two updates by something else than the optimizer.

    ## Why is this a bug?
    The optimizer's moments and the schedule know nothing of such changes. Weight decay by hand comes on top of the
    optimizer's own; an average of the weights that is written into the model, instead of being kept separately, slows
    the training down; memory that is shared with another model is trained by both.

    ## What to do
    Look at what writes to the parameters: a decay by hand, averaged weights that are not taken back, shared memory.
    Right for a constraint on the weights, such as normalising them.

    ## When it is right
    Ignore this warning for a constraint on the weights that is intended, such as normalising them. Weights that are
    clipped between two bounds (a Wasserstein GAN's critic), or moved for a second backward pass and moved back before
    the update (adversarial training, SAM), and states that are loaded, are not reported.
    """

    needs = "second update of one backward pass"
    in_windows = "all"
    formerly = ("effect::only-the-optimizer-writes",)
    severity = "warning"

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.parameters = monitor.fact(Parameters)
        self.backward_passes = 0
        """Since the latest step of any optimizer."""
        self.followed: WeakKeyDictionary[Optimizer, list[torch.Tensor]] = WeakKeyDictionary()
        """A few tensors of each optimizer, and those of others that it holds too."""
        self.left: dict[int, torch.Tensor] = {}
        """What the latest step of any optimizer made of each, by its id."""

    def on_backward(self, event: Backward) -> None:
        self.backward_passes += 1

    def on_step_begins(self, event: StepBegins) -> None:
        if not event.sampled or self.backward_passes != 1:
            return  # several backward passes may go through weights that are moved for a while
        for parameter in self.followed.get(event.optimizer, ()):
            left = self.left.get(id(parameter))
            if left is None:
                continue
            self.looked = True
            apart = (parameter.detach() - left).abs().max().item()
            if apart > RELATIVE * left.abs().max().item() + ABSOLUTE and not is_clamped(left, parameter.detach()):
                self.found(
                    expected="parameters as the update before left them",
                    observed=f"{self.parameters.name_of(parameter)} was changed by up to {apart:.2g} since",
                    where=event.where,
                    update=event.update,
                )

    def on_step(self, event: Step) -> None:
        self.backward_passes = 0
        if event.optimizer not in self.followed:
            self._follow(event.optimizer)
        for parameter in self.followed[event.optimizer]:
            self.left[id(parameter)] = parameter.detach().clone()

    def _follow(self, optimizer: Optimizer) -> None:
        mine = _small_ones(optimizer)
        held = {id(p) for p in held_by(optimizer)}
        theirs = {id(p): p for others in self.followed.values() for p in others if id(p) in held}
        for other, followed in self.followed.items():
            of_other = {id(p) for p in held_by(other)}
            followed += [p for p in mine if id(p) in of_other and id(p) not in {id(each) for each in followed}]
        self.followed[optimizer] = list(({id(p): p for p in mine} | theirs).values())
        alive = {id(p) for each in self.followed.values() for p in each}
        self.left = {key: left for key, left in self.left.items() if key in alive}

    def on_load(self, event: Load) -> None:
        self.left.clear()


def _small_ones(optimizer: Optimizer) -> list[torch.Tensor]:
    """Two small trainable tensors, one of them a matrix if there is one."""
    small = sorted((p for p in held_by(optimizer) if p.requires_grad), key=lambda p: p.numel())
    return small[:1] + [p for p in small if p.dim() > 1][:1]
