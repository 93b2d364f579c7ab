"""Schedules: the learning rates of a scheduler by step, and the step with which it ends."""

from __future__ import annotations

import copy
import itertools
import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch.optim import Optimizer, lr_scheduler

from harness.findings import first_line
from harness.torch_objects import TWINS, raw_optimizer, unchanged_random_state
from harness.watch.facts.stateless import LIBRARIES, keeps_nothing, numbers_in
from harness.watch.locate import from_signal_handler

MOST_STEPS = 100_000
"""Largest number of steps of a schedule that are computed one after another. No fine-tuning is longer."""

LATER = (1.1, 1.25, 1.5, 1.75, 2, 2.5, 3, 4, 6, 8)
"""Times its end at which a schedule that is over must be as it was: a cosine of any period is elsewhere at some."""

SETTLED_BELOW = 0.1
"""Largest share of its peak at which a schedule that stays as it is counts as over. By reasoning: cosines with a
minimum end at a tenth, and what stays higher is a constant rate after some first steps."""


class NotComputable(Exception):
    """Raised by :attr:`Schedule.rate` where the script's own function is not asked, or fails; its message says how."""


@dataclass(frozen=True)
class Schedule:
    """What a scheduler does to the learning rate of the first parameter group."""

    rate: Callable[[int], float] | None
    """The learning rate after so many steps, counted on from where the scheduler stands; of a LambdaLR from its first
    value. Raises NotComputable. None where the rate depends on more than the steps, or cannot be computed."""
    end: int | None
    """The step that it was made to end with; None where it has no end."""
    problem: str | None = None
    """Why something of it is not known that steps alone should tell."""


def schedule_of(scheduler: Any) -> Schedule:
    """The learning rates of a scheduler by step, and the step with which it ends."""
    if isinstance(scheduler, lr_scheduler.ReduceLROnPlateau):
        return Schedule(None, None)
    try:
        _refuse_what_keeps_something(scheduler)
        rate = _by_lambda(scheduler) if isinstance(scheduler, lr_scheduler.LambdaLR) else _simulated(scheduler)
    except NotComputable as error:
        end = None if isinstance(scheduler, lr_scheduler.LambdaLR) else _stated_end(scheduler)
        return Schedule(None, end, str(error))
    try:
        is_lambda = isinstance(scheduler, lr_scheduler.LambdaLR)
        return Schedule(rate, _end(rate, scheduler.lr_lambdas[0]) if is_lambda else _stated_end(scheduler))
    except NotComputable as error:
        return Schedule(rate, None, str(error))


def _refuse_what_keeps_something(scheduler: Any) -> None:
    """A function that is asked about later steps, and keeps what it was asked, would tell the script others.

    Raises:
        NotComputable: a function of the scheduler, or of one within it, may.
    """
    for each in getattr(scheduler, "_schedulers", ()):
        _refuse_what_keeps_something(each)
    if not all(keeps_nothing(function) for function in getattr(scheduler, "lr_lambdas", ())):
        raise NotComputable("its function is not asked ahead, as it may keep something between its calls")


@contextmanager
def _of_the_script() -> Iterator[None]:
    """Code of the script's own is called inside.

    Raises:
        NotComputable: it failed.
    """
    try:
        yield
    except Exception as error:
        if from_signal_handler(error):
            raise
        raise NotComputable(f"it fails ahead: {first_line(error)}") from error


def _by_lambda(scheduler: lr_scheduler.LambdaLR) -> Callable[[int], float]:
    base, function = float(scheduler.base_lrs[0]), scheduler.lr_lambdas[0]

    def rate(step: int) -> float:
        with _of_the_script():
            return base * float(function(step))

    return rate


def _end(rate: Callable[[int], float], function: Any) -> int | None:
    """The step from which a schedule that decays to its end stays as it is; None where it does not."""

    def settled(step: int) -> bool:
        return all(rate(step) == rate(later) for later in (step + 1, step + 2, 2 * step + 3, 10 * step + 1000))

    high = 1
    while not settled(high):
        high *= 2
        if high > 100 * MOST_STEPS:
            return _touches_zero(rate, function)
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if settled(middle) else (middle, high)
    tail = [rate(step) for step in range(max(0, high - 6), high + 1)]
    peak = max(rate(round(high * part / 50)) for part in range(51))
    if any(rate(round(high * times)) != rate(high) for times in LATER):
        return None  # it rises again: what is cut off at 0 on its way down may come back
    falls = all(one > other for one, other in itertools.pairwise(tail))
    return high if falls and tail[-1] <= SETTLED_BELOW * peak else None


def _touches_zero(rate: Callable[[int], float], function: Any) -> int | None:
    """The step at which a schedule comes down to 0 before it rises again, as a cosine does.

    A straight line goes on below 0. Where it was made to end cannot be seen in it, as a line to a tenth of its first
    rate would be at 0 later: it ends there only if its function has this very number.
    """
    peak = before = rate(0)
    for step in range(1, MOST_STEPS):
        now = rate(step)
        if now <= 1e-9 * peak and before > now:
            is_line = math.isclose(before - now, now - rate(step + 1), rel_tol=1e-6)
            return step if not is_line or step in {math.ceil(each) for each in numbers_in(function)} else None
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
        return schedule_of(scheduler).end
    return None


def _simulated(scheduler: Any) -> Callable[[int], float]:
    """The learning rates of a copy of the scheduler with an optimizer of its own, from where it stands."""
    groups = [
        {name: value for name, value in group.items() if name != "params"} | {"params": [torch.zeros(1, device="cpu")]}
        for group in raw_optimizer(scheduler.optimizer).param_groups
    ]
    with _of_the_script():
        twin = _twin(scheduler, torch.optim.SGD(copy.deepcopy(groups), lr=0.1))
    TWINS.update([twin, *getattr(twin, "_schedulers", ())])
    rates = [float(twin.optimizer.param_groups[0]["lr"])]
    librarys = type(scheduler).__module__.partition(".")[0] in LIBRARIES

    def rate(step: int) -> float:
        while len(rates) <= step:
            set_aside = nullcontext() if librarys else unchanged_random_state()
            with (
                set_aside,
                _of_the_script(),
                warnings.catch_warnings(action="ignore"),
            ):  # no optimizer step comes before
                _step(twin)
            rates.append(float(twin.optimizer.param_groups[0]["lr"]))
        return rates[step]

    return rate


def _step(twin: Any) -> None:
    try:
        twin.step()
    except ValueError as error:  # OneCycleLR stays at its end
        if from_signal_handler(error):
            raise


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
