from __future__ import annotations

from harness.watch.check import Check
from harness.watch.events import BackwardBegins
from harness.watch.facts.batches import content_digest
from harness.watch.monitor import Monitor

MIN_BATCHES = 5
"""Batches in a row that the loader gave, while the model was given the same rows. By reasoning: rows may repeat, but
whole batches do not."""


class StaleBatch(Check):
    """The model is given the same batch again and again, while the loader gives others.

    ## Why is this a bug?
    The loop goes over the loader under one name and feeds the model from another, which still holds a batch from
    before. That batch is learned by heart: the loss falls as it should, to nearly 0.

    ## What to do
    Feed the model with the variable that the loop assigns.

    ## When it is right
    One batch that is trained on without a loader, to see whether the model can learn it, is not reported; nor are fixed
    inputs (collocation points, a noise that an image is made of) where the targets are the loader's.
    """

    id = "inputs::stale-batch"
    needs = "batches of a DataLoader"
    explains = ("rows::repeated-or-skipped",)

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.given: bytes | None = None
        """Of what the model and the loss were given, the digest."""
        self.drawn: set[bytes] = set()
        """Of the batches that came meanwhile, the digests."""
        self.latest = 0
        """The number of the latest of them."""

    def on_backward_begins(self, event: BackwardBegins) -> None:
        batch = event.batch
        if batch is None or not self.monitor.is_sampled() or not event.forwards or batch.number == self.latest:
            return
        targets = [call.target for call in event.losses]
        if not targets and "labels" not in event.forwards[-1].tensors:
            return
        self.looked = True
        self.latest = batch.number
        given = content_digest([[each.tensors for each in event.forwards], targets])
        if given != self.given:
            self.given, self.drawn = given, set()
        self.drawn.add(content_digest(batch.data))
        if len(self.drawn) >= MIN_BATCHES:
            self.found(
                expected="the rows of each batch",
                observed=f"{len(self.drawn)} different batches came from the loader, and the model was given one batch",
                where=event.forwards[-1].where,
                update=self.monitor.update,
            )
