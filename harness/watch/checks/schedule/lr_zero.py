from __future__ import annotations

from weakref import WeakKeyDictionary

from torch.optim import Optimizer

from harness.watch.check import Check
from harness.watch.events import End, StepBegins
from harness.watch.facts.scheduler_ledger import Fault, SchedulerLedger
from harness.watch.monitor import Monitor

IN_A_ROW = 3
"""Smallest number of updates at a learning rate of 0 that are reported. By reasoning: a warmup
begins with one, and a schedule that restarts touches 0 once."""


class LrZero(Check):
    """The learning rate is 0, or so small that it changes nothing, while the training goes on.

    ## Why is this a bug?
    An update at a learning rate of 0 leaves the weights as they are: the batches are computed for nothing. It happens
    where the rate is divided in whole numbers (`(epochs - epoch) // epochs` is 0 from the second epoch on), where it is
    multiplied by a factor once a step that was meant for an epoch, or where a schedule has come to its end.

    ## What to do
    Look at the optimizer's lr, at the warmup, and at what the scheduler multiplies it with.

    ## When it is right
    A warmup from 0, a schedule that ends at 0 with the training (or a few updates before it, one for each epoch),
    an optimizer of which only some groups have a learning rate of 0, and warm restarts are not reported.
    """

    id = "schedule::lr-zero"
    needs = "learning rate"
    formerly = ("schedule::lr-above-zero",)

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.schedulers = monitor.fact(SchedulerLedger)
        self.zeros: WeakKeyDictionary[Optimizer, int] = WeakKeyDictionary()
        """Latest updates of each optimizer that were made with a learning rate of 0."""
        self.began: WeakKeyDictionary[Optimizer, tuple[str | None, int]] = WeakKeyDictionary()
        """Where and when these had become too many."""
        self.zero: tuple[str | None, int] | None = None
        """Where and when they had for the first time, and others came after them."""

    def on_step_begins(self, event: StepBegins) -> None:
        rates = [float(group["lr"]) for group in event.optimizer.param_groups if group.get("lr") is not None]
        self.looked |= bool(rates)
        is_zero = max(rates, default=1.0) <= 0
        self.zeros[event.optimizer] = 1 + self.zeros.get(event.optimizer, 0) if is_zero else 0
        if self.zeros[event.optimizer] == IN_A_ROW:
            self.began[event.optimizer] = event.where, event.update
        elif not is_zero and event.optimizer in self.began:
            began = self.began.pop(event.optimizer)
            self.zero = self.zero or began

    def on_end(self, event: End) -> None:
        for verdict in self.schedulers.with_fault(Fault.NEGLIGIBLE_TOO_SOON):
            self.found(
                expected="a learning rate that lasts for the training",
                observed=verdict.observed,
                where=verdict.of.where,
                update=verdict.update,
                hint="Step it once an epoch, or choose a slower decay.",
            )
        for optimizer, began in self.began.items():
            if self.zeros[optimizer] > self.schedulers.rounding:
                self.zero = self.zero or began
        if self.zero is not None:
            where, update = self.zero
            self.found(
                expected="a learning rate above 0",
                observed="it is 0 for three updates in a row",
                where=where,
                update=update,
            )
