"""AdamW then and now: the documents import it from transformers, which removed it (4.49.0 has it, 4.50.3 has not)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import torch
from torch.optim import Optimizer

from harness.torch_objects import adam_update


class TransformersAdamW(Optimizer):
    """``transformers.AdamW`` with its defaults, as the documents used it.

    Written down from its semantics, to be compared with. It differs from ``torch.optim.AdamW`` in three things: epsilon
    (1e-6, not 1e-8) is added before the bias correction of the second moment and so weighs more in the first updates;
    weight decay is 0, not 0.01; and it would be applied after the update, not before.

    Args:
        params: what to train, tensors or groups.
        lr: the learning rate; 1e-3 where none is given.
        betas: decay rates of the two moments.
        eps: added to the root of the second moment.
        weight_decay: decoupled: the share of each parameter, times lr, that an update takes away.
        correct_bias: whether the moments are corrected for starting at 0.
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-6,
        weight_decay: float = 0.0,
        correct_bias: bool = True,
    ) -> None:
        super().__init__(
            params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "correct_bias": correct_bias}
        )

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for parameter in group["params"]:
                if parameter.grad is None:
                    continue
                state = self.state[parameter]
                if not state:
                    state |= {"step": 0, "first": torch.zeros_like(parameter), "second": torch.zeros_like(parameter)}
                state["step"] += 1
                state["first"].mul_(beta1).add_(parameter.grad, alpha=1 - beta1)
                state["second"].mul_(beta2).addcmul_(parameter.grad, parameter.grad, value=1 - beta2)
                size = group["lr"]
                if group["correct_bias"]:
                    size *= math.sqrt(1 - beta2 ** state["step"]) / (1 - beta1 ** state["step"])
                parameter.addcdiv_(state["first"], state["second"].sqrt().add_(group["eps"]), value=-size)
                parameter.add_(parameter, alpha=-group["lr"] * group["weight_decay"])


def torch_adamw_update(
    parameter: float, gradients: Iterable[float], *, lr: float, betas: tuple[float, float], eps: float, decay: float
) -> float:
    """What ``torch.optim.AdamW`` makes of one number, in float64: the paper's algorithm 2, decay before the update."""
    first = second = 0.0
    for step, gradient in enumerate(gradients, start=1):
        decayed = parameter * (1 - lr * decay)
        parameter, first, second = adam_update(decayed, gradient, first, second, step=step, lr=lr, betas=betas, eps=eps)
    return parameter


def transformers_adamw_update(
    parameter: float, gradients: Iterable[float], *, lr: float, betas: tuple[float, float], eps: float, decay: float
) -> float:
    """What ``transformers.AdamW`` makes of one number, in float64."""
    stepped = torch.nn.Parameter(torch.tensor([parameter], dtype=torch.float64))
    optimizer = TransformersAdamW([stepped], lr=lr, betas=betas, eps=eps, weight_decay=decay)
    for gradient in gradients:
        stepped.grad = torch.tensor([gradient], dtype=torch.float64)
        optimizer.step()
    return stepped.item()
