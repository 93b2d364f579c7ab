from __future__ import annotations

from harness.watch.check import Check
from harness.watch.events import End
from harness.watch.facts.copies import MIN_UPDATES, Copies
from harness.watch.monitor import Monitor


class CopyWithoutBuffers(Check):
    """A copy follows the network's parameters and not its running statistics, and is used with those it began with.

    ## Why is this a bug?
    Batch normalisation keeps its running mean and variance in buffers, which `parameters()` does not yield. A moving
    average that goes through the parameters alone leaves them at 0 and 1: in eval mode the copy normalises by numbers
    that have nothing to do with its inputs.

    ## What to do
    Copy the buffers, too: `for kept, new in zip(copy.buffers(), model.buffers()): kept.copy_(new)`; or give
    `AveragedModel` `use_buffers=True`, or call `update_bn` before the copy is used.

    ## When it is right
    A copy in train mode computes statistics of its own and is not reported. Neither is one whose statistics are
    refreshed before it is called in eval mode.

    ## References
    - https://docs.pytorch.org/docs/stable/optim.html#weight-averaging-swa-and-ema
    """

    status = "new"
    needs = "moving average of a network with batch normalisation"

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.copies = monitor.fact(Copies)

    def on_end(self, event: End) -> None:
        for each in self.copies.all:
            self.looked |= each.norms is not None and each.follows and each.updates >= MIN_UPDATES
            if each.stale is not None:
                self.found(
                    expected="running statistics that follow the network's, as the parameters do",
                    observed=f"{each.shown} is called in eval mode with the running mean that it began with, after "
                    f"{each.updates} updates in which the network's moved: its buffers are not copied",
                    where=each.stale,
                )
