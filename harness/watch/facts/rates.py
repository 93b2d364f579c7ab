"""Rates: the learning rates with which updates are made."""

from __future__ import annotations

from dataclasses import dataclass
from weakref import WeakKeyDictionary

from torch.optim import Optimizer

from harness.findings import lines_at
from harness.torch_objects import share_groups
from harness.watch.bus import Recogniser
from harness.watch.events import End, Fact, StepBegins
from harness.watch.facts.scheduler_ledger import SchedulerLedger

IN_A_ROW = 3
"""Smallest number of updates at a learning rate of 0 that are reported. By reasoning: a warmup
begins with one, and a schedule that restarts touches 0 once."""


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
    makes = (RatesUsed,)

    def begin(self) -> None:
        self._schedulers = self.fact(SchedulerLedger)
        self._any = False
        self._zeros: WeakKeyDictionary[Optimizer, Zeros] = WeakKeyDictionary()
        """The latest updates of each optimizer, if they were made with a learning rate of 0."""
        self._too_many: Zeros | None = None
        """The first ones that were too many and that others came after, or the latest."""

    def on_step_begins(self, event: StepBegins) -> None:
        rates = [float(group["lr"]) for group in event.optimizer.param_groups if group.get("lr") is not None]
        self._any |= bool(rates)
        if max(rates, default=1.0) > 0:
            zeros = self._zeros.pop(event.optimizer, None)
            if zeros is not None:
                zeros.over = True
            return
        zeros = self._zeros.setdefault(event.optimizer, Zeros())
        zeros.count += 1
        if zeros.count == IN_A_ROW:
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
