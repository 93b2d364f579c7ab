from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harness import launch
from harness.watch.check import Check
from harness.watch.events import PassEnds
from harness.watch.facts.datasets import row_hashes
from harness.watch.facts.samplers import shares
from harness.watch.monitor import Monitor


class RowsDividedTwice(Check):
    """The training rows are divided among the processes twice, so that most of them are never trained on.

    ## Why is this a bug?
    `accelerator.prepare` and `DistributedSampler` give each rank its part of the dataset that they are given. If that
    is already a part (`dataset.shard(world_size, rank)`), each rank trains on a part of its part: with two processes
    half of the rows come up, with eight an eighth.

    ## What to do
    Divide the rows once: give accelerator.prepare, or the DistributedSampler, the whole dataset on each rank.

    ## When it is right
    Ranks with datasets of their own, each of which is used in full, are not reported, nor are datasets whose rows
    cannot be read without calling the script's own code.

    ## References
    - https://github.com/huggingface/accelerate/issues/4201
    """

    needs = "rows that are divided among processes"

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.rows: dict[str, Any] | None = None
        """Of the first loader that was trained on and divides its rows."""

    def on_pass_ends(self, event: PassEnds) -> None:
        ranks = shares(event.of.loader)
        if self.rows is None and event.of.trains and ranks > 1 and launch.in_process_group():
            hashes = row_hashes(event.of.dataset)
            known = None if hashes is None else sum(hashes) % 2**32
            self.rows = {"all": known, "count": len(hashes or ()), "ranks": ranks, "where": event.of.where}

    def summary(self) -> dict[str, Any] | None:
        return self.rows

    def compare(self, summaries: Sequence[Mapping[str, Any] | None]) -> None:
        known = [each for each in summaries if each is not None and each["all"] is not None]
        self.looked = len(known) == len(summaries)
        if self.looked and len({each["all"] for each in known}) == len(known):
            first = known[0]
            self.found(
                expected="one dataset on all ranks, of which each is given its part",
                observed=f"each rank has a dataset of its own ({first['count']} rows on rank 0), and is given one of "
                f"{first['ranks']} parts of it",
                where=first["where"],
            )
