from __future__ import annotations

import linecache
import re

from harness.watch.check import Check
from harness.watch.events import End
from harness.watch.facts.scheduler_ledger import SchedulerLedger, SchedulerSeen
from harness.watch.monitor import Monitor

A_STEP = re.compile(r"\.step\(|[^\w\s.].*\.step\b")
"""A line that calls a step(), or hands it on to be called; not one that only names it and lacks the parentheses."""

FEWEST_UPDATES = 20
"""Updates by hand-made batches that are more than a trial, after which a schedule should have made a step. Neither half
nor double of it changes a verdict of the corpus."""


class NeverStepped(Check):
    """A learning rate scheduler is made and never stepped.

    ## Why is this a bug?
    A scheduler changes nothing by being there: the learning rate stays at its first value. With a linear decay, that is
    the highest value, to the end; with a warmup it is 0, or close to it, and the model learns nothing.

    ## What to do
    Call scheduler.step() after optimizer.step(), once an update, or once an epoch where its length is in epochs.

    `accelerator.prepare` returns a scheduler that still has to be stepped. Trainer steps the one that it gets.

    ## When it is right
    A constant schedule changes nothing anyway, and is not reported. Neither is one whose `step()` is on a line of the
    script that was not reached: it may wait for a later epoch, or for the last batch of a shortened pass.

    ## References
    - https://docs.pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate
    """

    needs = "learning rate scheduler"
    formerly = ("schedule::stepped-in-wrong-unit", "schedule::steps-with-the-updates")
    explains = ("schedule::lr-zero",)

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.schedulers = monitor.fact(SchedulerLedger)

    def on_end(self, event: End) -> None:
        self.looked = self.schedulers.any_seen
        for seen, updates in self.schedulers.where_observed(self._observed):
            self.found(
                expected="scheduler.step() after each update, or each epoch",
                observed=f"{seen.name} was made and never stepped, in {updates} updates",
                where=seen.made,
                update=1,
            )

    def _observed(self, seen: SchedulerSeen) -> int | None:
        """The updates in which it should have been stepped."""
        if seen.steps or seen.name == "ReduceLROnPlateau" or not self.schedulers.known:
            return None
        trained = self.schedulers.epochs or seen.updates >= FEWEST_UPDATES
        missing = trained and not self.schedulers.is_flat(seen) and not self._may_step_later(seen)
        return seen.updates if missing else None

    def _may_step_later(self, seen: SchedulerSeen) -> bool:
        """Whether some line that calls a step() was not come to.

        It may wait for a number of epochs, or, where passes were shortened, for the last batch, which is told by
        len(): ``if i + 1 == len(loader): scheduler.step()``.
        """
        stepped_at = self.schedulers.stepped_at
        files = {place.rpartition(":")[0] for place in {*stepped_at, seen.made or ""}}
        if not self.schedulers.epochs:  # how long its epochs are is not known
            files |= self.monitor.locator.users_files()
        lines = ((f"{file}:{n}", line) for file in files for n, line in enumerate(linecache.getlines(file), start=1))
        return any(A_STEP.search(line.partition("#")[0]) and place not in stepped_at for place, line in lines)
