"""A scheduler's own function is asked about steps to come only where it can be seen to keep nothing."""

from __future__ import annotations

import bisect
import functools
import itertools
import math
import random
from collections import Counter, defaultdict
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.optim.lr_scheduler import ConstantLR, LambdaLR, LRScheduler, MultiplicativeLR, SequentialLR
from transformers import get_cosine_schedule_with_warmup, get_inverse_sqrt_schedule

from harness.watch.facts.schedules import schedule_of
from harness.watch.facts.stateless import keeps_nothing

STEPS, MARKS = 20, [3, 7]
SETTINGS = SimpleNamespace(warmup=4, marks=[3, 7])
SEEN: list[int] = []
COUNTS: Counter[int] = Counter()
RATES = itertools.count(1)


def cosine(step: int, total: int = STEPS) -> float:
    if step > 10 * total:
        raise ValueError(step)
    return 0.5 * (1 + math.cos(math.pi * min(step, total) / total))


def warm(step: int) -> float:
    rate = min(1.0, (step + 1) / SETTINGS.warmup)
    rate *= cosine(step)
    return rate


def enclosed(factor: Callable[[int], float], scale: Any = 1.0) -> Callable[[int], float]:
    return lambda step: factor(step) * scale


class Noam:
    def __init__(self) -> None:
        self.warmup, self.asked = 4, 0

    def __call__(self, step: int) -> float:
        return min((step + 1) ** -0.5, (step + 1) * self.warmup**-1.5)

    def asked_for(self, step: int) -> float:
        self.asked += 1
        return 1 / self.asked


def counted(step: int) -> float:
    SEEN.append(step)
    return 0.9 ** len(SEEN)


def by_default(step: int, seen: dict[str, int] = {"n": 0}) -> float:  # noqa: B006
    seen["n"] += 1
    return 0.9 ** seen["n"]


def once_more(step: int) -> float:
    global STEPS
    STEPS += 1
    return 1 / STEPS


def nonlocally() -> Callable[[int], float]:
    asked = 0

    def factor(step: int) -> float:
        nonlocal asked
        asked += 1
        return 1 / asked

    return factor


@pytest.mark.parametrize(
    "function",
    [
        lambda step: 0.9**step,
        lambda step: max(0.0, (STEPS - step) / STEPS),
        lambda step: 0.1 ** len([mark for mark in MARKS if mark <= step]),
        lambda step: 0.1 ** sum(step >= mark for mark in SETTINGS.marks),
        lambda step: 0.1 ** sum(step >= mark for mark in sorted(list(MARKS))),  # noqa: C414
        lambda step: 0.1 ** bisect.bisect_right(MARKS, step),
        lambda step: np.interp([step], [0, 4, 20], [0, 1, 0])[0],
        lambda step: float(np.minimum(1.0, step / 4)),
        cosine,
        warm,
        enclosed(warm, 0.5),
        functools.partial(cosine, total=8),
        Noam(),
        Noam().__call__,
    ],
)
def test_what_keeps_nothing(function: Any) -> None:
    assert keeps_nothing(function)


@pytest.mark.parametrize(
    "function",
    [
        counted,
        by_default,
        once_more,
        nonlocally(),
        enclosed(counted),
        enclosed(nonlocally()),
        functools.partial(enclosed, counted),
        Noam().asked_for,
        lambda step: next(RATES) / 100,
        lambda step: random.random(),
        lambda step: np.random.rand(),
        lambda step: torch.rand(1).item(),
        lambda step: print(step) or 1.0,
        lambda step: COUNTS[step] + 1.0,
        lambda step: sum(rate for rate in RATES if rate < step),
        enclosed(cosine, defaultdict(float)),
        SETTINGS.marks.append,
        dict.fromkeys,
    ],
)
def test_what_may_keep_something(function: Any) -> None:
    assert not keeps_nothing(function)


def optimizer() -> torch.optim.Optimizer:
    return torch.optim.SGD(nn.Linear(2, 2).parameters(), lr=0.1)


def test_a_librarys_function_is_asked() -> None:
    schedule = schedule_of(get_cosine_schedule_with_warmup(optimizer(), 2, 20))
    assert schedule.end == 20
    assert schedule_of(get_inverse_sqrt_schedule(optimizer(), 2)).rate is not None


@pytest.mark.parametrize("made", [LambdaLR, MultiplicativeLR])
def test_a_function_with_a_state_is_not_asked(made: Callable[..., LRScheduler]) -> None:
    asked: list[int] = []

    def factor(step: int) -> float:
        asked.append(step)
        return 0.9

    scheduler = made(optimizer(), factor)
    both = SequentialLR(scheduler.optimizer, [scheduler, ConstantLR(scheduler.optimizer)], milestones=[3])
    before = len(asked)
    for each in (scheduler, both):
        schedule = schedule_of(each)
        assert schedule.rate is None
        assert schedule.end is None
        assert schedule.problem is not None
        assert "between its calls" in schedule.problem
    assert len(asked) == before


def test_a_scheduler_of_the_scripts_own_draws_nothing() -> None:
    class Jittered(LRScheduler):
        def get_lr(self) -> list[float]:  # type: ignore[override]
            return [0.1 * random.random() for _ in self.base_lrs]

    scheduler = Jittered(optimizer())
    before = random.getstate()
    rate = schedule_of(scheduler).rate
    assert rate is not None
    assert rate(5) > 0
    assert random.getstate() == before
