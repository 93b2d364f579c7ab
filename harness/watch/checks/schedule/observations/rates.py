"""Rates: the learning rates with which updates are made."""

from __future__ import annotations

import itertools
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from torch.optim import Optimizer

from harness.findings import lines_at
from harness.torch_objects import share_groups
from harness.watch.events import End, Fact, StepBegins
from harness.watch.facts.scheduler_ledger import SchedulerLedger
from harness.watch.recogniser import Recogniser

UPDATES_IN_A_ROW = 3
"""Smallest number of updates at a learning rate of 0 that are reported. By reasoning: a warmup
begins with one, and a schedule that restarts touches 0 once."""


MOMENTS = 21
"""Moments of a training, evenly over it, whose learning rates are told."""

MOST_RATES = 1_000_000
"""Updates whose learning rates are kept, in 8 bytes each."""


class RatesUsed(Fact):
    """A run is over in which updates were made with a learning rate.

    ``where`` is the step, or, where a library makes it, the schedule or the optimizer.
    """

    needs = "learning rate"
    of_run = True
    zero: float | None = None
    """The largest rate of updates in a row that were made with none, in the middle of the run or in more of them than
    rounding leaves at its end; None without any."""
    update: int = 1
    """When they became too many."""


class RatesByHand(Fact):
    """A training is over in which the learning rate of an optimizer changed that no scheduler drives.

    ``where`` is the latest step.
    """

    needs = "learning rate that the script changes itself"
    of_run = True
    updates: int
    made_with: float
    """The rate that the optimizer was made with."""
    rates: Sequence[float]
    """At MOMENTS moments, evenly over the training: the largest of the groups'."""
    falls: bool = False
    """Whether any was smaller than the one before."""


@dataclass(eq=False)
class FollowedRates:
    """The learning rates of one optimizer, update by update, the first MOST_RATES."""

    made_with: float
    rates: array[float] = field(default_factory=lambda: array("d"))
    where: str | None = None


@dataclass(eq=False)
class Zeros:
    """Updates of one optimizer, one after the other, with a learning rate of 0."""

    count: int = 0
    where: str | None = None
    update: int = 0
    """When they became too many."""
    rate: float = 0.0
    over: bool = False
    """Whether one with another rate came after them."""


class Rates(Recogniser):
    makes = (RatesUsed, RatesByHand)

    def begin(self) -> None:
        self._followed: WeakKeyDictionary[Optimizer, FollowedRates] = WeakKeyDictionary()
        self._schedulers = self.fact(SchedulerLedger)
        self._any = False
        self._zeros: WeakKeyDictionary[Optimizer, Zeros] = WeakKeyDictionary()
        """The latest updates of each optimizer, if they were made with a learning rate of 0."""
        self._too_many: Zeros | None = None
        """The first ones that were too many and that others came after, or the latest."""

    def on_step_begins(self, event: StepBegins) -> None:
        rates = [float(group["lr"]) for group in event.optimizer.param_groups if group.get("lr") is not None]
        self._any |= bool(rates)
        if rates and (event.optimizer in self._followed or event.number == 1):
            made_with = float(event.optimizer.defaults.get("lr") or 0.0)
            followed = self._followed.setdefault(event.optimizer, FollowedRates(made_with))
            followed.where = event.where
            if len(followed.rates) < MOST_RATES:
                followed.rates.append(max(rates))
        if max(rates, default=1.0) > 0:
            zeros = self._zeros.pop(event.optimizer, None)
            if zeros is not None:
                zeros.over = True
            return
        zeros = self._zeros.setdefault(event.optimizer, Zeros())
        zeros.count += 1
        if zeros.count == UPDATES_IN_A_ROW:
            zeros.where, zeros.update, zeros.rate = self._where(event), event.update, max(rates)
            if self._too_many is None or not self._too_many.over:
                self._too_many = zeros

    def _where(self, event: StepBegins) -> str | None:
        """The line of the step; where a library makes it (`trainer.fit`), that of the schedule or of the optimizer."""
        lines, line = lines_at(event.where)
        if not lines or "step(" in "".join(lines[line - 1 : line]):
            return event.where
        schedulers = self.monitor.schedulers.items()
        made = [at for each, at in schedulers if share_groups(getattr(each, "optimizer", None), event.optimizer)]
        return next(filter(None, made), event.made)

    def on_end(self, event: End) -> None:
        zeros = self._too_many
        if zeros is not None and (zeros.over or zeros.count > self._schedulers.rounding):
            self.tell(RatesUsed(zero=zeros.rate, update=zeros.update, where=zeros.where))
        elif self._any:
            self.tell(RatesUsed())
        driven = [getattr(each, "optimizer", None) for each in self.monitor.schedulers]
        for optimizer, followed in self._followed.items() if event.at.complete else ():
            rates = followed.rates
            if min(rates) < max(rates) and not any(share_groups(each, optimizer) for each in driven):
                self.tell(
                    RatesByHand(
                        updates=len(rates),
                        made_with=followed.made_with,
                        rates=[rates[round((len(rates) - 1) * part / (MOMENTS - 1))] for part in range(MOMENTS)],
                        falls=any(one > other for one, other in itertools.pairwise(rates)),
                        where=followed.where,
                    )
                )
