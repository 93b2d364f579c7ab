from __future__ import annotations

import itertools
from collections.abc import Iterator

from harness.watch.check import Check
from harness.watch.events import End
from harness.watch.facts.scheduler_ledger import FEWEST_IDLE, SchedulerLedger, SchedulerSeen
from harness.watch.monitor import Monitor


class DrivesAnotherOptimizer(Check):
    """The scheduler changes the learning rate of another optimizer than the one that makes the updates.

    ## Why is this a bug?
    A scheduler writes into the parameter groups of the optimizer that it was made with. If the optimizer is made again
    afterwards, or two schedulers get the same one of two optimizers, the optimizer that trains keeps its first learning
    rate: no warmup, no decay.

    ## What to do
    Make the scheduler with the optimizer that is stepped, after it is final.

    ## When it is right
    Several optimizers with a scheduler for some of them are not reported, as long as every scheduler that is stepped
    has an optimizer that makes updates, and no two schedulers with the same settings share one optimizer while another
    has none. Different schedulers on one optimizer are chained. An optimizer that wraps the one that makes updates, and
    shares its groups, counts as that one.
    """

    needs = "learning rate scheduler"
    formerly = ("schedule::drives-the-optimizer",)
    explains = (
        "schedule::lr-zero",
        "schedule::stepped-before-update",
        "schedule::never-stepped",
        "schedule::rates-for-factors",
        "schedule::warmup-never-ends",
        "schedule::decays-too-fast",
        "schedule::stepped-in-wrong-unit",
        "schedule::wrong-length",
        "schedule::may-be-too-long",
    )

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.schedulers = monitor.fact(SchedulerLedger)

    def on_end(self, event: End) -> None:
        self.looked = self.schedulers.any_seen
        for seen in self._of_idle_optimizers():
            self._found(seen, "changes the learning rate of an optimizer that makes none", 1)
        for seen, latest in self.schedulers.where_observed(self._replaced):
            how = f"goes on with an optimizer whose latest update was update {latest}: another one took its place"
            self._found(seen, how, latest + 1)
        for seen in self._two_on_one():
            self._found(seen, "and another scheduler share one optimizer, while another has none", 1)

    def _found(self, seen: SchedulerSeen, how: str, update: int) -> None:
        self.found(
            expected="a scheduler of the optimizer that makes the updates",
            observed=f"{seen.name} {how}",
            where=seen.made,
            update=update,
        )

    def _of_idle_optimizers(self) -> Iterator[SchedulerSeen]:
        if self.monitor.stepped:
            yield from (each for each in self.schedulers.all_seen if each.optimizer is None and each.steps > 1)

    def _replaced(self, seen: SchedulerSeen) -> int | None:
        """The latest update of a scheduler's optimizer, where another has taken that one's place."""
        idle = seen.idle >= FEWEST_IDLE and seen.replaced and not seen.takes_turns
        return seen.latest if idle and not self.schedulers.is_flat(seen) else None

    def _two_on_one(self) -> Iterator[SchedulerSeen]:
        """Two alike on one optimizer while another has none were meant for one each; others are chained."""
        stepped = [seen for seen in self.schedulers.driving if seen.steps]
        if self.schedulers.stepping <= len({seen.optimizer for seen in stepped}):
            return
        pairs = itertools.combinations(stepped, 2)
        yield from itertools.islice((b for a, b in pairs if a.optimizer == b.optimizer and a.settings == b.settings), 1)
