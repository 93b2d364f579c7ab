"""Units of layers: those that began alike, and whether updates have made them differ."""

from __future__ import annotations

from dataclasses import dataclass
from weakref import WeakSet, ref

import torch
from torch import nn
from torch.nn.modules.conv import _ConvNd

from harness.watch.events import Backward, Fact
from harness.watch.recogniser import Recogniser

AFTER = 5
"""The update from which on units that began alike would differ. Half or double of it changes verdicts
(scripts/records/margins.json)."""

RELATIVE = 1e-5
"""Largest difference between units, as a share of the largest weight, that rounding may make. By reasoning: some
roundings of float32."""

Layer = nn.Linear | _ConvNd


class UnitsFollowed(Fact):
    """Some updates after its layers were first seen, a model is trained on. ``where`` is the backward pass."""

    needs = "update of a linear or convolutional layer"
    in_windows = "first"
    layer: str | None = None
    """A layer that is trained and whose units began alike and still are."""
    units: int = 0


@dataclass(frozen=True)
class UnitsBegan:
    """A layer whose units were alike when it was first seen."""

    name: str
    layer: ref[Layer]
    start: torch.Tensor
    """The first unit's weights."""


class Units(Recogniser):
    makes = (UnitsFollowed,)

    def begin(self) -> None:
        self._looked_at: WeakSet[nn.Module] = WeakSet()
        self._alike: list[UnitsBegan] = []

    def on_backward(self, event: Backward) -> None:
        if event.inside_step or not event.at.sampled:
            return
        if event.at.updates_made >= AFTER:
            if self._looked_at:
                self.tell(UnitsFollowed(where=event.where))
            self._alike = [each for each in self._alike if self._is_still(each, event)]
            return
        for forward in event.forwards:
            if forward.number in event.reached and forward.model not in self._looked_at:
                self._looked_at.add(forward.model)
                self._alike += _layers_alike(forward.model)

    def _is_still(self, alike: UnitsBegan, event: Backward) -> bool:
        layer = alike.layer()
        if layer is None or not _are_alike(layer):
            return False
        weight = layer.weight
        if weight.grad is None or not weight.grad.any() or torch.equal(weight[0], alike.start):
            return True  # it is not trained yet
        self.tell(UnitsFollowed(layer=alike.name, units=len(weight), where=event.where))
        return False


def _layers_alike(model: nn.Module) -> list[UnitsBegan]:
    return [
        UnitsBegan(
            f"{name or type(layer).__name__} of {type(model).__name__}", ref(layer), layer.weight[0].detach().clone()
        )
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
