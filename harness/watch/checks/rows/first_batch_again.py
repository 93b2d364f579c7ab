from __future__ import annotations

from harness.watch.check import Check
from harness.watch.events import End
from harness.watch.facts.passes import Passes
from harness.watch.monitor import Monitor


class FirstBatchAgain(Check):
    """The loop begins a new pass for each batch, and gets the same first batch each time.

    ## Why is this a bug?
    `next(iter(loader))` makes a new iterator. If the loader does not shuffle, that gives the first batch in each
    update: the model learns a few rows by heart and never sees the others.

    ## What to do
    Write `for batch in loader`; `next(iter(loader))` begins a new pass each time.

    ## When it is right
    One batch that is learned by heart on purpose is taken from the loader once, before the loop, and is not reported.
    If the loader shuffles, each batch is drawn from all rows; `rows::epoch-cut-short` warns about that.
    """

    needs = "training over a DataLoader"
    formerly = ("rows::repeated-or-skipped", "rows::every-row-once")
    explains = ("schedule::may-be-too-long", "schedule::wrong-length")

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.passes = monitor.fact(Passes)

    def on_end(self, event: End) -> None:
        if not self.monitor.complete:
            return
        self.looked = bool(self.passes.training())
        anew = self.passes.begun_anew()
        if anew is not None and anew.same:
            self.found(
                expected="passes over all batches",
                observed=f"{anew.count} passes were begun and left after one batch, the same each time",
                where=anew.where,
                update=2,
            )
