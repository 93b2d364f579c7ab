from __future__ import annotations

import math

from harness.watch.check import Check
from harness.watch.events import End
from harness.watch.facts.scheduler_ledger import NEGLIGIBLE, NO_SCHEDULER, TOO_SHORT, SchedulerLedger, SchedulerSeen
from harness.watch.monitor import Monitor


class WrongLength(Check):
    """The learning rate's schedule is over before the training, or the training before the schedule.

    ## Why is this a bug?
    A schedule that is too short leaves the learning rate at its final value, usually 0, for the remaining updates: they
    change nothing or, if a cosine rises again, undo what the decay was for. One that is too long stops at a rate that
    is still high. Neither crashes, and the loss curve looks like one of a training that has converged.

    ## What to do
    Make it for epochs * ceil(batches an epoch / accumulated batches) steps, and step it once an update.

    Count the batches of the training loader (after `accelerator.prepare`, which divides them among processes), and not
    the rows of the dataset. After resuming, continue with the epoch that has not been run yet.

    ## When it is right
    Warm restarts and other schedules without an end are not compared with the number of updates. A schedule may be over
    before the training if the rate stays at a floor from then on, such as a tenth of its peak. A run that is
    interrupted or resumes an earlier one may stop before its schedule does, unless every epoch is left after the same
    part of the batches that the schedule was made for. A run that a number of updates ends in the middle of an epoch is
    not measured in whole epochs. If an evaluation may have ended the training early, this is the warning
    `schedule::may-be-too-long`.
    """

    needs = "schedule that can be computed ahead"
    formerly = ("schedule::ends-with-the-training",)
    explains = ("schedule::lr-zero", "schedule::may-be-too-long", "rows::epoch-cut-short")

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.schedulers = monitor.fact(SchedulerLedger)

    def lacks(self) -> str:
        if self.schedulers.any_with_end:
            return TOO_SHORT
        return super().lacks() if self.schedulers.any_seen else NO_SCHEDULER

    def on_end(self, event: End) -> None:
        self.looked = self.schedulers.lengths_are_seen
        for judge in (self._over_early, self._too_long, self._of_whole_passes):
            for seen, (observed, update) in self.schedulers.where_observed(judge):
                said = {"expected": seen.expected_length, "observed": f"{seen.name}: {observed}"}
                if judge == self._over_early and self.schedulers.makes_a_pass_more(seen):
                    said = seen.pass_more
                self.found(**said, where=seen.made or seen.where, update=update)

    def _over_early(self, seen: SchedulerSeen) -> tuple[str, int] | None:
        if seen.end is None or not self.schedulers.is_over_early(seen) or self._goes_on_at_its_end(seen, seen.end):
            return None
        observed = f"it is over after {seen.end} of {seen.planned_steps} steps"
        return observed, min(seen.end + 1, self.monitor.updates_made)

    def _goes_on_at_its_end(self, seen: SchedulerSeen, end: int) -> bool:
        """Whether a schedule stays, from its end on, at a learning rate with which a training may go on."""
        if seen.rate is None or seen.stops_at() <= NEGLIGIBLE:
            return False
        marks = [seen.rate(end + round((seen.planned - end) * part / 5)) for part in range(6)]
        return all(math.isclose(mark, marks[0], rel_tol=1e-6) for mark in marks)

    def _too_long(self, seen: SchedulerSeen) -> tuple[str, int] | None:
        ledger = self.schedulers
        if seen.end is None or not seen.steps or not ledger.outlasts_the_training(seen) or ledger.restored:
            return None
        if ledger.evaluated_between and not ledger.counts_other_units(seen):
            return None  # it may have been stopped early
        return seen.stops_early, min(seen.end + 1, self.monitor.updates_made)

    def _of_whole_passes(self, seen: SchedulerSeen) -> tuple[str, int] | None:
        """A schedule is made for whole passes, and each of three or more is left at the same batch."""
        ledger = self.schedulers
        if ledger.known or ledger.shortened or ledger.restored or not self.monitor.complete:
            return None
        if seen.end is None or not seen.steps or not ledger.has_steps_left(seen):
            return None
        if ledger.epochs < 3 or len(ledger.extents) > 1:
            return None
        batches, planned = next(iter(ledger.extents))
        if planned is None or batches >= planned:
            return None
        # The last batch may have been fetched for nothing.
        left_after = (n for n in (batches, batches - 1) if n)
        allowed = ledger.allowed(seen)
        used = next((n for n in left_after if abs(seen.end - seen.planned * planned / n) <= allowed), None)
        if used is None:
            return None
        made = f"it is made for {seen.end} steps, of epochs of {planned} batches, and each is left after {used}"
        return made, self.monitor.updates_made
