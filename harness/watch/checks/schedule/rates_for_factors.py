from __future__ import annotations

from harness.watch.check import Check
from harness.watch.events import End
from harness.watch.facts.scheduler_ledger import Fault, SchedulerLedger
from harness.watch.monitor import Monitor


class RatesForFactors(Check):
    """The function of a `LambdaLR` returns learning rates where factors are meant.

    ## Why is this a bug?
    What it returns is multiplied with the optimizer's learning rate: 0.001 becomes 0.000001, and the model hardly
    moves.

    ## What to do
    Return factors of the optimizer's learning rate, up to 1, or make the optimizer with lr=1.0.

    ## When it is right
    Functions that return rates are right with an optimizer whose learning rate is 1, and are not reported.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.optim.lr_scheduler.LambdaLR.html
    """

    id = "schedule::rates-for-factors"
    needs = "learning rate scheduler"
    formerly = ("schedule::lr-zero", "schedule::lr-above-zero")

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.schedulers = monitor.fact(SchedulerLedger)

    def on_end(self, event: End) -> None:
        self.looked = self.schedulers.any_with_rates
        for verdict in self.schedulers.with_fault(Fault.SQUARED):
            self.found(
                expected=f"factors that {verdict.of.name} multiplies the learning rate {verdict.of.base:.3g} with",
                observed=verdict.observed,
                where=verdict.of.made,
                update=verdict.update,
            )
