from __future__ import annotations

from harness.watch.check import Check
from harness.watch.events import End
from harness.watch.facts.passes import Passes, latest_of
from harness.watch.facts.samplers import skipped_batches
from harness.watch.monitor import Monitor


class SkippedInEachEpoch(Check):
    """The first batches are skipped in each epoch, and not only in the one that is resumed.

    ## Why is this a bug?
    `skip_first_batches` returns a loader that always leaves them out. If it takes the place of the loader for the whole
    training, each epoch is short by that many batches; without shuffling, the same rows are always missing.

    ## What to do
    Use what `skip_first_batches` returns for the epoch that is resumed only, and the loader itself from then on.

    ## When it is right
    Never. A single epoch with skipped batches is not reported.

    ## References
    - https://github.com/huggingface/accelerate/issues/2316
    """

    needs = "second epoch"
    formerly = ("rows::repeated-or-skipped", "rows::every-row-once")
    explains = ("schedule::may-be-too-long", "schedule::wrong-length")

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.passes = monitor.fact(Passes)

    def on_end(self, event: End) -> None:
        training = self.passes.training()
        if not self.monitor.complete or sum(each.count for each in training) < 2:
            return
        self.looked = True
        if all(skipped_batches(each.first.loader) for each in training):
            latest = latest_of(training)
            self.found(
                expected="all batches in each epoch",
                observed=f"the first {skipped_batches(latest.loader)} of them are skipped in each",
                where=latest.where,
                update=self.monitor.updates_made,
            )
