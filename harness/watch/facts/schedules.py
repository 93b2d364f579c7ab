"""Schedules: the learning rates of a scheduler by step, and the step with which it ends."""

from __future__ import annotations

import copy
import itertools
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch.optim import Optimizer, lr_scheduler

from harness.torch_objects import raw_optimizer

MOST_STEPS = 100_000
"""So many steps of a schedule are computed at most."""


def formula(scheduler: Any) -> tuple[Callable[[int], float] | None, int | None]:
    """The first group's learning rate by step, and the step with which the schedule ends."""
    if isinstance(scheduler, lr_scheduler.LambdaLR):
        base, function = float(scheduler.base_lrs[0]), scheduler.lr_lambdas[0]

        def rate(step: int) -> float:
            return base * float(function(step))

        return rate, _end(rate)
    if isinstance(scheduler, lr_scheduler.ReduceLROnPlateau):
        return None, None
    return _simulated(scheduler), _stated_end(scheduler)


def _end(rate: Callable[[int], float]) -> int | None:
    """The step from which a schedule that decays to its end stays as it is; None where it does not."""

    def settled(step: int) -> bool:
        return all(rate(step) == rate(later) for later in (step + 1, step + 2, 2 * step + 3, 10 * step + 1000))

    try:
        high = 1
        while not settled(high):
            high *= 2
            if high > 100 * MOST_STEPS:
                return _touches_zero(rate)
        low = high // 2
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if settled(middle) else (middle, high)
        tail = [rate(step) for step in range(max(0, high - 6), high + 1)]
        peak = max(rate(round(high * part / 50)) for part in range(51))
        falls = all(one > other for one, other in itertools.pairwise(tail))
    except (ArithmeticError, ValueError, IndexError, KeyError, TypeError):
        return None
    return high if falls and tail[-1] <= 0.1 * peak else None


def _touches_zero(rate: Callable[[int], float]) -> int | None:
    """The step at which a schedule comes down to 0 before it rises again, as a cosine does."""
    peak = before = rate(0)
    for step in range(1, MOST_STEPS):
        now = rate(step)
        if now <= 1e-9 * peak and before > now:
            return step
        peak, before = max(peak, now), now
    return None


def _stated_end(scheduler: Any) -> int | None:
    if isinstance(scheduler, lr_scheduler.SequentialLR):
        end = _stated_end(scheduler._schedulers[-1])
        return None if end is None else int(scheduler._milestones[-1]) + end
    if isinstance(scheduler, lr_scheduler.CosineAnnealingLR):
        return int(scheduler.T_max)
    if isinstance(scheduler, lr_scheduler.OneCycleLR):
        return int(scheduler.total_steps)
    if isinstance(scheduler, lr_scheduler.PolynomialLR):
        return int(scheduler.total_iters)
    if isinstance(scheduler, lr_scheduler.LinearLR) and scheduler.end_factor < scheduler.start_factor:
        return int(scheduler.total_iters)
    if isinstance(scheduler, lr_scheduler.LambdaLR):
        return formula(scheduler)[1]
    return None


def _simulated(scheduler: Any) -> Callable[[int], float] | None:
    """The learning rates of a copy of the scheduler with an optimizer of its own, from where it stands."""
    groups = [
        {name: value for name, value in group.items() if name != "params"} | {"params": [torch.zeros(1)]}
        for group in raw_optimizer(scheduler.optimizer).param_groups
    ]
    try:
        twin = _twin(scheduler, torch.optim.SGD(copy.deepcopy(groups), lr=0.1))
    except (TypeError, ValueError, RuntimeError, AttributeError):
        return None
    rates = [float(twin.optimizer.param_groups[0]["lr"])]

    def rate(step: int) -> float:
        while len(rates) <= step:
            try:
                with warnings.catch_warnings(action="ignore"):  # no optimizer step comes before
                    twin.step()
            except ValueError:  # OneCycleLR at its end
                rates.append(rates[-1])
                continue
            rates.append(float(twin.optimizer.param_groups[0]["lr"]))
        return rates[step]

    return rate


def _twin(scheduler: Any, optimizer: Optimizer) -> Any:
    twin = copy.copy(scheduler)
    twin.__dict__ = {
        name: value if name in ("optimizer", "lr_lambdas") else copy.deepcopy(value)
        for name, value in vars(scheduler).items()
        if name not in ("_schedulers", "optimizer", "step")
    }
    twin.optimizer = optimizer
    if "_schedulers" in vars(scheduler):
        twin._schedulers = [_twin(each, optimizer) for each in scheduler._schedulers]
    return twin
