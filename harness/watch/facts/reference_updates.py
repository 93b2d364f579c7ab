"""Reference updates: what an optimizer's formula makes of a gradient, in float64."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch.optim import SGD, Adam, AdamW, Optimizer


@dataclass
class Before:
    """A tensor before an update."""

    parameter: torch.Tensor
    group: dict[str, Any]
    gradient: torch.Tensor
    value: torch.Tensor
    state: dict[str, Any]


def state_of(optimizer: Optimizer, parameter: torch.Tensor) -> dict[str, Any]:
    state = optimizer.state.get(parameter, {})
    return {name: value.clone() if torch.is_tensor(value) else value for name, value in state.items()}


def expected_update(optimizer: Optimizer, before: Before) -> torch.Tensor | None:
    """The parameter after the step by the formula of the paper, in float64; None for other optimizers.

    AdamW: Loshchilov and Hutter 2019, algorithm 2; Adam: Kingma and Ba 2015, algorithm 1; SGD as torch documents it.
    """
    g, group = before.gradient.double(), before.group
    value, lr = before.value.double(), float(group["lr"])
    decay = float(group.get("weight_decay", 0.0))
    if group.get("maximize"):
        return None
    if isinstance(optimizer, (Adam, AdamW)):
        if group.get("amsgrad") or g.is_complex():
            return None
        beta1, beta2 = (float(beta) for beta in group["betas"])
        t = float(before.state.get("step", 0)) + 1
        if isinstance(optimizer, AdamW) or group.get("decoupled_weight_decay"):
            value = value * (1 - lr * decay)
        else:
            g = g + decay * value
        zero = torch.zeros_like(value)
        m = beta1 * before.state.get("exp_avg", zero).double() + (1 - beta1) * g
        v = beta2 * before.state.get("exp_avg_sq", zero).double() + (1 - beta2) * g * g
        denominator: torch.Tensor = v.sqrt() / math.sqrt(1 - beta2**t) + float(group["eps"])
        after: torch.Tensor = value - lr * (m / (1 - beta1**t)) / denominator
        return after
    if type(optimizer) is SGD:
        momentum = float(group.get("momentum", 0.0))
        g = g + decay * value
        if momentum:
            buffer = before.state.get("momentum_buffer")
            m = g if buffer is None else momentum * buffer.double() + (1 - float(group["dampening"])) * g
            g = g + momentum * m if group.get("nesterov") else m
        return value - lr * g
    return None
