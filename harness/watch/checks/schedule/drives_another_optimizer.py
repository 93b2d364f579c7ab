from __future__ import annotations

from harness.watch.check import Check
from harness.watch.events import End
from harness.watch.facts.scheduler_ledger import Fault, SchedulerLedger
from harness.watch.monitor import Monitor


class DrivesAnotherOptimizer(Check):
    """The scheduler changes the learning rate of another optimizer than the one that makes the updates.

    ## Why is this a bug?
    A scheduler writes into the parameter groups of the optimizer that it was made with. If the optimizer is made again
    afterwards, or two schedulers are given the same one of two optimizers, the optimizer that trains keeps its first
    learning rate: no warmup, no decay.

    ## What to do
    Make the scheduler with the optimizer that is stepped, after it is final.

    ## When it is right
    Several optimizers with a scheduler for some of them are not reported, as long as every scheduler that is stepped
    has one that makes updates, and no two that are alike share one while another has none. Different ones on one
    optimizer are chained. An optimizer that wraps the one that makes updates, and shares its groups, counts as that.
    """

    id = "schedule::drives-another-optimizer"
    needs = "learning rate scheduler"
    formerly = ("schedule::drives-the-optimizer",)
    explains = ("schedule::lr-zero",)

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.schedulers = monitor.fact(SchedulerLedger)

    def on_end(self, event: End) -> None:
        self.looked = self.schedulers.any_seen
        for verdict in self.schedulers.with_fault(Fault.OF_ANOTHER_OPTIMIZER, Fault.SHARES_AN_OPTIMIZER):
            how = (
                "changes the learning rate of an optimizer that makes none"
                if verdict.fault is Fault.OF_ANOTHER_OPTIMIZER
                else "and another scheduler share one optimizer, while another has none"
            )
            self.found(
                expected="a scheduler of the optimizer that makes the updates",
                observed=f"{verdict.of.name} {verdict.observed or how}",
                where=verdict.of.made,
                update=verdict.update,
            )
