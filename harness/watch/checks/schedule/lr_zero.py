from __future__ import annotations

from dataclasses import dataclass
from weakref import WeakKeyDictionary

from torch.optim import Optimizer

from harness.findings import lines_at
from harness.torch_objects import share_groups
from harness.watch.check import Check
from harness.watch.events import End, StepBegins
from harness.watch.facts.scheduler_ledger import SchedulerLedger
from harness.watch.monitor import Monitor

IN_A_ROW = 3
"""Smallest number of updates at a learning rate of 0 that are reported. By reasoning: a warmup
begins with one, and a schedule that restarts touches 0 once."""


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


class LrZero(Check):
    """The learning rate is 0 while the training goes on.

    ## Why is this a bug?
    An update at a learning rate of 0 leaves the weights as they are: the batches are computed for nothing. It happens
    when the rate is computed by integer division (`(epochs - epoch) // epochs` is 0 from the second epoch on), or when
    a schedule has come to its end.

    ## What to do
    Look at the optimizer's lr, at the warmup, and at what the scheduler multiplies it with.

    ## When it is right
    A warmup from 0, a schedule that ends at 0 with the training (or a few updates before it, one for each epoch), an
    optimizer with a learning rate of 0 in only some of its groups, and warm restarts are not reported.
    """

    needs = "learning rate"
    formerly = ("schedule::lr-above-zero",)

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.schedulers = monitor.fact(SchedulerLedger)
        self.zeros: WeakKeyDictionary[Optimizer, Zeros] = WeakKeyDictionary()
        """The latest updates of each optimizer, if they were made with a learning rate of 0."""
        self.too_many: Zeros | None = None
        """The first ones that were too many and that others came after, or the latest."""

    def on_step_begins(self, event: StepBegins) -> None:
        rates = [float(group["lr"]) for group in event.optimizer.param_groups if group.get("lr") is not None]
        self.looked |= bool(rates)
        if max(rates, default=1.0) > 0:
            zeros = self.zeros.pop(event.optimizer, None)
            if zeros is not None:
                zeros.over = True
            return
        zeros = self.zeros.setdefault(event.optimizer, Zeros())
        zeros.count += 1
        if zeros.count == IN_A_ROW:
            zeros.where, zeros.update, zeros.rate = self._where(event), event.update, max(rates)
            if self.too_many is None or not self.too_many.over:
                self.too_many = zeros

    def _where(self, event: StepBegins) -> str | None:
        """The line of the step; where a library makes it (`trainer.fit`), that of the schedule or of the optimizer."""
        lines, line = lines_at(event.where)
        if not lines or "step(" in "".join(lines[line - 1 : line]):
            return event.where
        schedulers = self.monitor.schedulers.items()
        made = [at for each, at in schedulers if share_groups(getattr(each, "optimizer", None), event.optimizer)]
        return next(filter(None, [*made, self.monitor.optimizers[event.optimizer].made]), event.where)

    def on_end(self, event: End) -> None:
        zeros = self.too_many
        if zeros is not None and (zeros.over or zeros.count > self.schedulers.rounding):
            self.found(
                expected="a learning rate above 0",
                observed=f"it is {zeros.rate:.3g} for three updates in a row",
                where=zeros.where,
                update=zeros.update,
            )
