from __future__ import annotations

from torch.utils.data import SequentialSampler

from harness.watch.check import Check
from harness.watch.events import End
from harness.watch.facts.passes import Passes
from harness.watch.facts.samplers import row_sampler
from harness.watch.monitor import Monitor


class EpochCutShort(Check):
    """Each epoch is left before it has gone through all training rows.

    ## Why is this a bug?
    A `break` or `itertools.islice` from a quick trial is easily left in the loop. What the script calls an epoch is
    then only part of one: the training has fewer updates than the numbers say, and a schedule that was made for whole
    epochs is far from its end.

    If `next(iter(loader))` takes each batch from a new pass, an epoch's number of batches misses about a third of the
    rows.

    ## What to do
    Take out the break, unless epochs are meant to be parts of the data.

    Write `for batch in loader`: `next(iter(loader))` begins a new pass each time.

    ## When it is right
    If an epoch is a fixed number of batches on purpose, with an evaluation after each, ignore this warning: with a
    different order each time, all rows come up in the end. The same holds if each update is meant to draw a batch from
    all rows. A last window of accumulated micro-batches that is left out, and a training that ends after a number of
    updates, are not reported.
    """

    needs = "whole epoch, as with --full"
    formerly = ("rows::complete-epochs",)
    severity = "warning"

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.passes = monitor.fact(Passes)

    def on_end(self, event: End) -> None:
        self.looked = any(each.first.exhausted and not each.first.shortened for each in self.passes.training())
        epoch = self.passes.left_early() if self.monitor.complete else None
        if epoch is not None and not isinstance(row_sampler(epoch.loader), SequentialSampler):
            self.found(
                expected=f"{epoch.planned} batches an epoch",
                observed=f"each epoch is left after {epoch.batches}",
                where=epoch.where,
                update=self.monitor.updates_made,
            )
        anew = self.passes.begun_anew() if self.monitor.complete else None
        if anew is not None and not anew.same:
            self.found(
                expected="passes over all batches",
                observed=f"{anew.count} passes were begun and left after one batch",
                hint="Write for batch in loader, unless each update is meant to draw a batch from all rows.",
                where=anew.where,
                update=2,
            )
