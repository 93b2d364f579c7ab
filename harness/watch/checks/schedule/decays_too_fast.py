from __future__ import annotations

from harness.watch.check import Check
from harness.watch.events import End
from harness.watch.facts.scheduler_ledger import Fault, SchedulerLedger
from harness.watch.monitor import Monitor


class DecaysTooFast(Check):
    """The learning rate becomes so small that it changes nothing while most of the training is still to come.

    ## Why is this a bug?
    A factor that was meant for an epoch is multiplied in once a step: 0.9 becomes 0.00003 within a hundred updates. The
    loss stands still, as if the model could learn no more.

    ## What to do
    Step the scheduler once an epoch, or choose a slower decay.

    ## When it is right
    A decay whose end comes with that of the training is not reported, nor are warm restarts.
    """

    id = "schedule::decays-too-fast"
    needs = "learning rate scheduler"
    formerly = ("schedule::lr-zero", "schedule::lr-above-zero")

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.schedulers = monitor.fact(SchedulerLedger)

    def on_end(self, event: End) -> None:
        self.looked = self.schedulers.any_with_rates
        for verdict in self.schedulers.with_fault(Fault.NEGLIGIBLE_TOO_SOON):
            self.found(
                expected="a learning rate that lasts for the training",
                observed=verdict.observed,
                where=verdict.of.where,
                update=verdict.update,
            )
