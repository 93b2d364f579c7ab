from __future__ import annotations

from harness.watch.check import Check
from harness.watch.events import End
from harness.watch.facts.scheduler_ledger import NO_SCHEDULER, SchedulerLedger, SchedulerSeen
from harness.watch.monitor import Monitor

TIMES_TOO_SHORT = 3
"""Times its length that the training makes, from which on a schedule as long as the epochs are is one of epochs."""

STEPS_AN_UPDATE = 1.5
"""Steps for an update from which on a scheduler is stepped at every micro-batch, or by two callers."""


class SteppedInWrongUnit(Check):
    """The learning rate's scheduler is not stepped in the unit that its length is given in.

    ## Why is this a bug?
    A scheduler counts its steps and knows nothing of batches or epochs. If it is made for updates and stepped once an
    epoch, it hardly begins. If it is made for epochs and stepped at every update, or made for updates and stepped at
    every micro-batch, its learning rate is at its end when most of the training is still to come.

    ## What to do
    Make it for epochs * ceil(batches an epoch / accumulated batches) steps, and step it once an update.

    Step a schedule in epochs (`CosineAnnealingLR(optimizer, T_max=epochs)`) once, at the end of each epoch. If
    gradients are accumulated, a scheduler that went through `accelerator.prepare` skips steps.

    ## When it is right
    Schedules without an end (`StepLR`, `ExponentialLR`, a constant rate) and `ReduceLROnPlateau` are not compared with
    the number of steps; a run that is interrupted or resumes an earlier one may stop before its schedule does.

    ## References
    - https://github.com/huggingface/accelerate/issues/963
    - https://docs.pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate
    """

    needs = "schedule that can be computed ahead"
    formerly = ("schedule::steps-with-the-updates",)
    explains = ("schedule::lr-zero", "schedule::wrong-length", "schedule::may-be-too-long")

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.schedulers = monitor.fact(SchedulerLedger)

    def lacks(self) -> str:
        return super().lacks() if self.schedulers.any_seen else NO_SCHEDULER

    def on_end(self, event: End) -> None:
        self.looked = self.schedulers.any_with_end
        for seen, observed in self.schedulers.where_observed(self._observed):
            update = min((seen.end or 0) + 1, self.monitor.updates_made)
            self.found(**observed, where=seen.where or seen.made, update=update)

    def _observed(self, seen: SchedulerSeen) -> dict[str, str] | None:
        unit = self._unit(seen)
        if unit is None:
            return None
        each = seen.steps / seen.updates if seen.updates else 1.0
        # As many times an update as its length was exceeded: the unit explains it.
        by_unit = abs(each * (seen.end or 0) - seen.planned) <= self.schedulers.allowed(seen)
        if each > STEPS_AN_UPDATE and not by_unit and self.schedulers.makes_a_pass_more(seen):
            return seen.pass_more
        return {"expected": seen.expected_length, "observed": unit}

    def _unit(self, seen: SchedulerSeen) -> str | None:
        epochs = self.schedulers.epochs
        if seen.end is None or not seen.steps:
            return None
        if self.schedulers.is_over_early(seen):
            observed = f"{seen.name}: it is over after {seen.end} of {seen.planned_steps} steps"
            if seen.end <= epochs + 1 and seen.planned >= TIMES_TOO_SHORT * seen.end:
                return f"{observed}; it is stepped at every update"
            each = seen.steps / seen.updates if seen.updates else 1.0
            return f"{observed}; it is stepped {each:.3g} times an update" if each > STEPS_AN_UPDATE else None
        once_an_epoch = self.schedulers.planned_updates > 3 and seen.planned <= epochs + 1
        once_an_epoch = once_an_epoch and epochs + 1 < self.schedulers.planned_updates
        if once_an_epoch and self.schedulers.outlasts_the_training(seen) and not self.schedulers.restored:
            return f"{seen.name}: {seen.stops_early}; it is stepped once an epoch"
        return None
