from __future__ import annotations

from harness.watch.check import Check
from harness.watch.events import BackwardBegins, Batch, End
from harness.watch.facts.batches import content_digest, is_data
from harness.watch.monitor import Monitor

MIN_BATCHES = 5
"""Batches in a row that the loader gave, while the model was given the same rows. By reasoning: rows may repeat, but
whole batches do not."""


class StaleBatch(Check):
    """The model is given the same batch again and again, while the loader gives others.

    ## Why is this a bug?
    The loop assigns the loader's batches to one name and feeds the model from another, which still holds an earlier
    batch. The model learns that batch by heart: the loss falls as it should, to nearly 0.

    ## What to do
    Feed the model with the variable that the loop assigns.

    ## When it is right
    One batch that is trained on without a loader, to see whether the model can learn it, is not reported. Neither are
    fixed inputs (collocation points, noise that an image is made from) if the targets are the loader's, or if the batch
    has another backward pass, which the loader's rows go through.
    """

    needs = "batches of a DataLoader"
    in_windows = "first"
    explains = ("rows::repeated-or-skipped",)

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.batch: Batch | None = None
        """The latest that was looked at."""
        self.now: set[bytes] = set()
        """Digests of what the model and the loss were given for it, of each backward pass."""
        self.labelled = False
        """Whether there were labels or targets among that."""
        self.where: str | None = None
        self.given: set[bytes] = set()
        """What they were given for the batch before."""
        self.drawn: set[bytes] = set()
        """Digests of the batches that came while they were given the same."""

    def on_backward_begins(self, event: BackwardBegins) -> None:
        if event.batch is None or not event.forwards:
            return
        if event.batch is not self.batch:
            self._judge()
            self.batch = event.batch if self.monitor.is_sampled() else None
        given = [[each.args, each.kwargs] for each in event.forwards]
        if self.batch is None or not is_data(given):
            self.batch = None  # what is in an object of the script's own is not known
            return
        targets = [call.target for call in event.losses]
        self.labelled |= bool(targets) or "labels" in event.forwards[-1].tensors
        self.where = event.forwards[-1].where
        self.now.add(content_digest([given, targets]))

    def on_end(self, event: End) -> None:
        self._judge()

    def _judge(self) -> None:
        """Compare the batch that is over with those before."""
        batch, now, labelled = self.batch, self.now, self.labelled
        self.batch, self.now, self.labelled = None, set(), False
        if batch is None or not labelled:
            return
        self.looked = True
        if now != self.given:
            self.given, self.drawn = now, set()
        self.drawn.add(content_digest(batch.data))
        if len(self.drawn) >= MIN_BATCHES:
            self.found(
                expected="the rows of each batch",
                observed=f"{len(self.drawn)} different batches came from the loader, and the model was given one batch",
                where=self.where,
                update=self.monitor.updates_made,
            )
