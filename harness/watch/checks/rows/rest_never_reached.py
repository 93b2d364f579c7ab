from __future__ import annotations

from torch.utils.data import SequentialSampler

from harness.watch.check import Check
from harness.watch.events import End, Pass
from harness.watch.facts.passes import Passes, latest_of
from harness.watch.facts.samplers import row_sampler
from harness.watch.monitor import Monitor


class RestNeverReached(Check):
    """Each epoch is left after the same first batches, so that no epoch reaches the rows behind them.

    ## Why is this a bug?
    A `break` or `itertools.islice` from a quick trial is easily left in the loop. If the loader does not shuffle, the
    model never trains on the rows behind it; if the data are sorted, whole classes are missing.

    ## What to do
    Take out the break, unless epochs are meant to be parts of the data.

    ## When it is right
    `rows::epoch-cut-short` warns about shuffled epochs, in which all rows come up in the end. A single pass that is
    left early and datasets that draw their rows themselves are not reported.
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
        epoch = self.passes.left_early()
        if epoch and isinstance(row_sampler(epoch.loader), SequentialSampler) and not self._are_drawn(epoch):
            self.found(
                expected=f"{epoch.planned} batches an epoch",
                observed=f"each epoch is left after {epoch.batches}, so the rows behind them are never trained on",
                where=epoch.where,
                update=self.monitor.updates_made,
            )

    def _are_drawn(self, epoch: Pass) -> bool:
        """Whether the dataset draws its rows itself, so that an index gives another one in another epoch."""
        begun = [self.passes.beginnings.get(each) for each in (epoch, latest_of(self.passes.training()))]
        one, other = ({} if each is None else each.at for each in begun)
        return any(one[index] != other[index] for index in one.keys() & other.keys())
