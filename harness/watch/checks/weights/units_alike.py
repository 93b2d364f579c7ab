from __future__ import annotations

from dataclasses import dataclass
from weakref import WeakSet, ref

import torch
from torch import nn
from torch.nn.modules.conv import _ConvNd

from harness.watch.check import Check
from harness.watch.events import Backward
from harness.watch.monitor import Monitor

AFTER = 5
"""The update from which on units that began alike would differ. Half or double of it changes verdicts
(docs/detection.md)."""

RELATIVE = 1e-5
"""Largest difference between units, as a share of the largest weight, that rounding may make. By reasoning: some
roundings of float32."""


Layer = nn.Linear | _ConvNd


@dataclass(frozen=True)
class Alike:
    """A layer whose units were alike when it was first seen."""

    name: str
    layer: ref[Layer]
    start: torch.Tensor
    """The first unit's weights."""


class UnitsAlike(Check):
    """All units of a layer are alike: they began with the same weights, and every update changes them in the same way.

    ## Why is this a bug?
    Units with the same weights compute the same output and get the same gradient, so they stay the same forever: a
    layer of 32 of them can do no more than one. This comes from setting the weights of all layers to one number; random
    numbers are what makes units differ.

    ## What to do
    Initialise weights with random numbers, as torch's layers do by themselves (nn.init.kaiming_uniform_,
    nn.init.xavier_uniform_); constants are for biases and normalisation.

    ## When it is right
    Layers that begin with equal weights and come apart, because the layers around them differ (a last layer that begins
    at 0), are not reported. Neither are layers without a gradient.

    ## References
    - https://www.deeplearningbook.org/contents/optimization.html (section 8.4, breaking the symmetry)
    """

    needs = "update of a linear or convolutional layer"
    in_windows = "first"

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.looked_at: WeakSet[nn.Module] = WeakSet()
        self.alike: list[Alike] = []

    def on_backward(self, event: Backward) -> None:
        if event.inside_step or not self.monitor.is_sampled():
            return
        if self.monitor.updates_made >= AFTER:
            self.looked |= bool(self.looked_at)
            self.alike = [each for each in self.alike if self._is_still(each, event)]
            return
        for forward in event.forwards:
            if forward.number in event.reached and forward.model not in self.looked_at:
                self.looked_at.add(forward.model)
                self.alike += _layers_alike(forward.model)

    def _is_still(self, alike: Alike, event: Backward) -> bool:
        layer = alike.layer()
        if layer is None or not _are_alike(layer):
            return False
        weight = layer.weight
        if weight.grad is None or not weight.grad.any() or torch.equal(weight[0], alike.start):
            return True  # it is not trained yet
        self.found(
            expected="units that differ from one another after some updates",
            observed=f"the {len(weight)} units of {alike.name} began alike and still are",
            where=event.where,
            update=self.monitor.update,
        )
        return False


def _layers_alike(model: nn.Module) -> list[Alike]:
    return [
        Alike(f"{name or type(layer).__name__} of {type(model).__name__}", ref(layer), layer.weight[0].detach().clone())
        for name, layer in model.named_modules()
        if isinstance(layer, (nn.Linear, _ConvNd)) and layer.weight.requires_grad and _are_alike(layer)
    ]


def _are_alike(layer: Layer) -> bool:
    """Whether all units have the same weights and the same bias; most layers show by two units that they have not."""
    weight, bias = layer.weight.detach(), layer.bias
    if len(weight) < 2 or not _alike(weight[:2]) or not _alike(weight):
        return False
    return bias is None or _alike(bias.detach())


def _alike(units: torch.Tensor) -> bool:
    return bool((units - units[:1]).abs().max() <= RELATIVE * units.abs().max())
