"""Reference updates: what an optimizer's formula makes of a gradient, in float64."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.optim import SGD, Adam, AdamW, Optimizer

from harness.torch_objects import adam_update
from harness.watch.host import MOST_ELEMENTS

UNCORRECTED = "the moments are not corrected for their bias"
DECAY_IN_GRADIENT = "the weight decay is added to the gradient"


@dataclass
class Before:
    """A tensor before an update, or evenly spread elements of a large one."""

    parameter: torch.Tensor
    group: dict[str, Any]
    gradient: torch.Tensor
    value: torch.Tensor
    state: dict[str, Any]

    @classmethod
    def of(cls, optimizer: Optimizer, parameter: torch.Tensor, group: dict[str, Any], gradient: torch.Tensor) -> Before:
        state = {
            name: looked_at(value, parameter).clone() if torch.is_tensor(value) else value
            for name, value in optimizer.state.get(parameter, {}).items()
        }
        value = looked_at(parameter, parameter).clone()
        return cls(parameter, group, looked_at(gradient, parameter).clone(), value, state)


def looked_at(tensor: torch.Tensor, parameter: torch.Tensor) -> torch.Tensor:
    """What is looked at of a parameter, its gradient, or its state: all, or evenly spread elements of a large one."""
    tensor = tensor.detach()
    apart = math.ceil(parameter.numel() / MOST_ELEMENTS)
    if apart <= 1 or tensor.shape != parameter.shape or type(parameter) not in (torch.Tensor, nn.Parameter):
        return tensor
    return tensor.reshape(-1)[::apart]


def expected_update(optimizer: Optimizer, before: Before) -> torch.Tensor | None:
    """The parameter after the step by the formula of the paper, in float64; None for other optimizers.

    AdamW: Loshchilov and Hutter 2019, algorithm 2; Adam: Kingma and Ba 2015, algorithm 1; SGD as torch documents it.
    """
    if before.group.get("maximize") or getattr(optimizer, "grad_scale", None) is not None:
        return None  # the latter divides the gradients itself, as a GradScaler has fused optimizers do
    if isinstance(optimizer, (Adam, AdamW)):
        decoupled = _is_decoupled(optimizer, before)
        return _adam(before, decoupled=decoupled, in_gradient=not decoupled)
    return _sgd(before) if type(optimizer) is SGD else None


def known_faults(optimizer: Optimizer, before: Before) -> Iterator[tuple[str, torch.Tensor]]:
    """What is known to go wrong in an Adam of one's own, and the parameter after such a step."""
    if not isinstance(optimizer, (Adam, AdamW)):
        return
    decoupled = _is_decoupled(optimizer, before)
    ways = [(UNCORRECTED, {"decoupled": decoupled, "in_gradient": not decoupled, "corrected": False})]
    if decoupled and before.group.get("weight_decay"):
        ways += [(DECAY_IN_GRADIENT, {"decoupled": too, "in_gradient": True}) for too in (False, True)]
    for fault, way in ways:
        if (after := _adam(before, **way)) is not None:
            yield fault, after


def _is_decoupled(optimizer: Optimizer, before: Before) -> bool:
    return isinstance(optimizer, AdamW) or bool(before.group.get("decoupled_weight_decay"))


def _adam(
    before: Before, *, decoupled: bool = False, in_gradient: bool = False, corrected: bool = True
) -> torch.Tensor | None:
    """Adam's update with the weight decay taken from the weights, or added to the gradient, or both."""
    group, state = before.group, before.state
    if group.get("amsgrad") or before.gradient.is_complex():
        return None
    gradient, value = before.gradient.double(), before.value.double()
    lr, decay = float(group["lr"]), float(group.get("weight_decay", 0.0))
    if in_gradient:
        gradient = gradient + decay * value
    if decoupled:
        value = value * (1 - lr * decay)
    zero = torch.zeros_like(value)
    first: torch.Tensor = state.get("exp_avg", zero).double()
    second: torch.Tensor = state.get("exp_avg_sq", zero).double()
    after, _, _ = adam_update(
        value,
        gradient,
        first,
        second,
        step=float(state.get("step", 0)) + 1 if corrected else math.inf,
        lr=lr,
        betas=(float(group["betas"][0]), float(group["betas"][1])),
        eps=float(group["eps"]),
    )
    return after


def _sgd(before: Before) -> torch.Tensor:
    group, value = before.group, before.value.double()
    gradient = before.gradient.double() + float(group.get("weight_decay", 0.0)) * value
    momentum = float(group.get("momentum", 0.0))
    if momentum:
        buffer = before.state.get("momentum_buffer")
        moved = gradient if buffer is None else momentum * buffer.double() + (1 - float(group["dampening"])) * gradient
        gradient = gradient + momentum * moved if group.get("nesterov") else moved
    return value - float(group["lr"]) * gradient
