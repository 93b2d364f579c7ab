"""Ranks: how many processes train, on which rows and from which datasets, and with which weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.optim import Optimizer
from torch.utils.data import Subset

from harness import launch
from harness.torch_objects import checksum, held_by
from harness.watch.bounded import FirstByKey
from harness.watch.events import Backward, Batch, End, Fact, PassEnds, Step, StepBegins
from harness.watch.facts.datasets import row_hashes
from harness.watch.facts.samplers import shares
from harness.watch.monitor import ALWAYS_SAMPLED
from harness.watch.recogniser import Recogniser
from harness.watch.run.rows import blind_in

MOST_ROWS = 256
"""Rows of a rank that are compared, about."""


class ProcessesAsked(Fact):
    """A run is over in a process that a launcher started, or of a script that was to have several."""

    needs = "second process"
    of_run = True
    advice: str | None = None
    """How to start several, where they were asked for and there is one."""


class DatasetsOfRanks(Fact):
    """The ranks are over, each of which was given a part of the rows. ``where`` is a loader of the first."""

    needs = "rows that are divided among processes"
    of_run = True
    rows: int
    """Rows of the first rank's dataset."""
    parts: int
    """Into which each loader divides them."""
    differ: bool
    """Whether each rank has a dataset of its own."""


class RowsOfRanks(Fact):
    """The ranks are over: the rows of the first beside those of another. ``where`` is a batch of the first."""

    needs = "second process"
    of_run = True
    rank: int
    """The other."""
    rows: int
    """Rows of the first rank that were looked at."""
    others: int
    """Rows of the other rank."""
    common: int


class WeightsOfRanks(Fact):
    """The ranks are over: their weights after one of the first updates. ``where`` is the optimizer step."""

    needs = "second process"
    of_run = True
    update: int
    ranks: int
    same: bool
    averaged: bool = False
    """Whether ranks that had different ones have the same again when a later update begins, as in local SGD."""


@dataclass(frozen=True)
class Candidate:
    """The rows of a batch that may be trained on."""

    number: int
    rows: set[str]
    where: str | None


class Ranks(Recogniser):
    makes = (ProcessesAsked, DatasetsOfRanks, RowsOfRanks, WeightsOfRanks)

    def begin(self) -> None:
        self._divided: dict[str, Any] | None = None
        """Facts of the first loader that was trained on and divides its rows."""
        self._rows: set[str] = set()
        """Hashes of the rows that were trained on in the first pass that trains."""
        self._is_over = False
        """Whether that pass is: in another epoch a rank is given rows that another had before."""
        self._where: str | None = None
        self._candidate: Candidate | None = None
        self._weights: dict[str, tuple[int, str | None]] = {}
        """Number of the update to the checksum of the weights and where it was made."""
        self._followed: tuple[Optimizer, torch.Tensor] | None = None
        """The first optimizer that steps, and its smallest tensor."""
        self._smallest = FirstByKey[str, tuple[int, int]]()
        """Number of one of the first updates to the checksums of that tensor before it and after it."""
        self._before = 0

    def on_pass_ends(self, event: PassEnds) -> None:
        self._is_over |= event.of.trains and bool(self._rows)
        ranks = shares(event.of.loader) if self._divided is None and event.of.trains else 1
        if ranks > 1 and launch.in_process_group():
            hashes = row_hashes(event.of.dataset)
            if hashes is None and isinstance(event.of.dataset, Subset):
                hashes = [int(index) for index in event.of.dataset.indices]  # of rows that only the script can read
            known = None if hashes is None else sum(hashes) % 2**32
            self._divided = {"all": known, "count": len(hashes or ()), "parts": ranks, "where": event.of.where}

    def on_batch(self, event: Batch) -> None:
        known = isinstance(event.indices, (list, tuple))
        first = event.of.number == 1 and not self._is_over
        if known and first and len(self._rows) < MOST_ROWS and launch.in_process_group():
            rows = {row.hex() for row in blind_in(event.data, len(event.indices))}
            self._candidate = Candidate(event.number, rows, event.where)

    def on_backward(self, event: Backward) -> None:
        if self._candidate is not None and event.batch is not None and event.batch.number == self._candidate.number:
            self._rows |= self._candidate.rows
            self._where = self._candidate.where

    def on_step_begins(self, event: StepBegins) -> None:
        if not self._smallest.takes(str(event.update)) or not launch.in_process_group():
            return
        held = held_by(event.optimizer) if self._followed is None else []
        if held:
            self._followed = event.optimizer, min(held, key=lambda tensor: tensor.numel())
        if self._followed is not None and self._followed[0] is event.optimizer:
            self._before = checksum([self._followed[1]])

    def on_step(self, event: Step) -> None:
        followed, update = self._followed, str(event.update)
        if followed is not None and followed[0] is event.optimizer and self._smallest.takes(update):
            self._smallest[update] = self._before, checksum([followed[1]])
        if event.update <= ALWAYS_SAMPLED and launch.in_process_group():
            self._weights[update] = checksum(held_by(event.optimizer)), event.where

    def on_end(self, event: End) -> None:
        advice = launch.fewer_than_asked()
        if advice or launch.world_size() is not None:
            self.tell(ProcessesAsked(advice=advice))

    def summary(self) -> dict[str, Any]:
        rows = {"rows": sorted(self._rows), "where": self._where}
        return {"divided": self._divided, "rows": rows, "weights": self._weights, "smallest": dict(self._smallest)}

    def compare(self, summaries: Sequence[Mapping[str, Any]]) -> None:
        divided = [each["divided"] for each in summaries if each["divided"] and each["divided"]["all"] is not None]
        if len(divided) == len(summaries):
            first, differ = divided[0], len({each["all"] for each in divided}) == len(divided)
            rows, parts = first["count"], first["parts"]
            self.tell(DatasetsOfRanks(rows=rows, parts=parts, differ=differ, where=first["where"]))
        for rank, summary in enumerate(summaries[1:] if self._rows else (), start=1):
            theirs = set(summary["rows"]["rows"])
            rows, common = len(self._rows), len(self._rows & theirs)
            self.tell(RowsOfRanks(rank=rank, rows=rows, others=len(theirs), common=common, where=self._where))
        averaged = come_together([each["smallest"] for each in summaries])
        for update, (own, where) in self._weights.items():
            values = {own, *(each["weights"][update][0] for each in summaries if update in each["weights"])}
            same, ranks = len(values) == 1, len(summaries)
            told = WeightsOfRanks(update=int(update), ranks=ranks, same=same, averaged=averaged, where=where)
            self.tell(told)


def come_together(ranks: Sequence[Mapping[str, tuple[int, int]]]) -> bool:
    """Whether they differ after some update and not any more when a later one begins."""
    differed = False
    for update in sorted(set.intersection(*map(set, ranks)), key=int):
        before, after = ({rank[update][which] for rank in ranks} for which in (0, 1))
        if differed and len(before) == 1:
            return True
        differed = len(after) > 1
    return False
