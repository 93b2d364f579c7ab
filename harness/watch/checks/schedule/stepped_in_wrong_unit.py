from __future__ import annotations

from harness.watch.check import Check
from harness.watch.events import End
from harness.watch.facts.scheduler_ledger import Fault, SchedulerLedger
from harness.watch.monitor import Monitor


class SteppedInWrongUnit(Check):
    """The learning rate's scheduler is not stepped in the unit that its length is given in, or not at all.

    ## Why is this a bug?
    A scheduler counts its steps and knows nothing of batches or epochs. Made for updates and stepped once an epoch, it
    hardly begins; made for epochs and stepped at every update, or made for updates and stepped at every micro-batch,
    its learning rate is at its end when most of the training is still to come. Never stepped, it stays at its first
    value, which under a warmup is 0.

    ## What to do
    Make it for epochs * ceil(batches an epoch / accumulated batches) steps, and step it once an update.

    A schedule in epochs (`CosineAnnealingLR(optimizer, T_max=epochs)`) is stepped once, at the end of each epoch.
    `accelerator.prepare` leaves steps out where gradients are accumulated, for a scheduler that it was given.

    ## When it is right
    Schedules without an end (`StepLR`, `ExponentialLR`, a constant rate) and `ReduceLROnPlateau` are not compared with
    the number of steps; a training that is interrupted or resumes an earlier one may stop before its schedule does.

    ## References
    - https://github.com/huggingface/accelerate/issues/963
    - https://docs.pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate
    """

    id = "schedule::stepped-in-wrong-unit"
    needs = "learning rate scheduler"
    formerly = ("schedule::steps-with-the-updates",)
    explains = ("schedule::lr-zero",)

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.schedulers = monitor.fact(SchedulerLedger)

    def on_end(self, event: End) -> None:
        self.looked = self.schedulers.any_seen
        for verdict in self.schedulers.with_fault(Fault.NEVER_STEPPED, Fault.WRONG_UNIT):
            seen = verdict.of
            if verdict.fault is Fault.WRONG_UNIT:
                self.found(
                    expected=verdict.expected_length,
                    observed=verdict.observed,
                    where=seen.where or seen.made,
                    update=verdict.update,
                )
            else:
                self.found(
                    expected="scheduler.step() after each update, or each epoch",
                    observed=f"{seen.name} was made and never stepped, in {seen.updates} updates",
                    where=seen.made,
                    update=verdict.update,
                    hint="Call scheduler.step() after optimizer.step().",
                )
