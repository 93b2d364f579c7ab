from __future__ import annotations

from torch.utils.data import IterableDataset

from harness.watch.check import Check
from harness.watch.events import Pass, PassEnds
from harness.watch.facts.passes import Beginning, Passes
from harness.watch.monitor import Monitor

ENOUGH_ROWS = 32
"""Rows of a pass that must have been seen. Neither half nor double of it changes a verdict of the corpus."""


class GivenByEachWorker(Check):
    """Every worker of the DataLoader gives all rows of an `IterableDataset`.

    ## Why is this a bug?
    Each worker has its own copy of the dataset and iterates over all of it: with four workers an epoch goes through
    each row four times. The steps of an epoch, the schedule and whatever is counted in epochs are off by that factor.

    ## What to do
    Split an `IterableDataset` over its workers: `torch.utils.data.get_worker_info()` says which of them it is in.

    ## When it is right
    Never. Rows that are in the data several times, and single rows that come twice, are not reported.

    ## References
    - https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.IterableDataset
    """

    needs = "epoch of an IterableDataset with several workers"
    formerly = ("rows::repeated-or-skipped", "rows::every-row-once")
    explains = ("schedule::may-be-too-long", "schedule::wrong-length")

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.passes = monitor.fact(Passes)

    def on_pass_ends(self, event: PassEnds) -> None:
        beginning = self.passes.beginnings.get(event.of)
        if not event.of.trains or beginning is None or beginning.rows.total() < ENOUGH_ROWS:
            return
        if event.of.loader.num_workers < 2 or not isinstance(event.of.dataset, IterableDataset):
            return
        self.looked = True
        if _given_by_all(event.of, beginning):
            self.found(
                expected="each row from one of the workers",
                observed=f"{beginning.rows.total()} rows of an epoch are {len(beginning.rows)} different ones, each "
                f"given by all {event.of.loader.num_workers} workers",
                where=beginning.where,
                update=self.monitor.updates_made,
            )


def _given_by_all(of: Pass, beginning: Beginning) -> bool:
    return of.exhausted and all(count % of.loader.num_workers == 0 for count in beginning.rows.values())
