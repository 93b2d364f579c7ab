from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness import launch
from harness.watch.check import Check
from harness.watch.events import Backward, Batch
from harness.watch.facts.batches import rows_in
from harness.watch.monitor import Monitor

MOST_ROWS = 256
"""Rows of a rank that are compared, about. Neither half nor double of it changes a verdict of the corpus."""

MAX_SHARE_OF_COMMON_ROWS = 0.5
"""Largest share of a rank's rows that may be another rank's too, as rows may be alike. By reasoning: ranks that share
their rows by mistake share all of them."""


@dataclass(frozen=True)
class Candidate:
    """The rows of a batch that may be trained on."""

    number: int
    rows: set[str]
    where: str | None


class RowsShared(Check):
    """Processes that train one model train on the same rows.

    ## Why is this a bug?
    The ranks' gradients are averaged. If all of them come from the same rows, the average is what one process would
    have had by itself: several times the work for the same update, and as many epochs as there are ranks for each
    intended one.

    ## What to do
    Prepare the training's DataLoader with the Accelerator, or give it a DistributedSampler.

    ## When it is right
    A few rows that come up on two ranks, because the data holds them twice or the last batches are filled up, are not
    reported.

    ## References
    - https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.distributed.DistributedSampler
    - https://github.com/huggingface/accelerate/issues/2268
    """

    needs = "second process"
    formerly = ("ranks::rows-of-its-own",)

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.rows: set[str] = set()
        """Hashes of the rows that were trained on in the first pass of a loader."""
        self.where: str | None = None
        self.candidate: Candidate | None = None

    def on_batch(self, event: Batch) -> None:
        known = isinstance(event.indices, (list, tuple))
        if known and event.of.number == 1 and len(self.rows) < MOST_ROWS and launch.in_process_group():
            rows = {row.hex() for row in rows_in(event.data, len(event.indices))}
            self.candidate = Candidate(event.number, rows, event.where)

    def on_backward(self, event: Backward) -> None:
        if self.candidate is not None and event.batch is not None and event.batch.number == self.candidate.number:
            self.rows |= self.candidate.rows
            self.where = self.candidate.where

    def summary(self) -> dict[str, Any]:
        return {"rows": sorted(self.rows), "where": self.where}

    def compare(self, summaries: Sequence[Mapping[str, Any] | None]) -> None:
        self.looked = bool(self.rows)
        for rank, each in enumerate(summaries[1:], start=1):
            theirs = set() if each is None else set(each["rows"])
            common = self.rows & theirs
            if self.rows and len(common) > MAX_SHARE_OF_COMMON_ROWS * min(len(self.rows), len(theirs)):
                self.found(
                    expected="another part of the rows for each rank",
                    observed=f"{len(common)} of {len(self.rows)} rows of rank 0 are rank {rank}'s too",
                    where=self.where,
                    update=1,
                )
                return
