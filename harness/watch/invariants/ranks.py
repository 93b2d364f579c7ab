"""Ranks: as many processes as were asked for, each with rows of its own, and all with the same weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from harness.launch import fewer_than_asked
from harness.watch.events_old import Batch, Step
from harness.watch.invariants.rows import rows_in
from harness.watch.observer import Invariant, Observer, Statement
from harness.watch.trace import checksum, held_by

HALF = 0.5
"""Of a rank's rows may be another rank's too, where rows are alike."""


class Ranks(Invariant):
    checks = (
        Statement("ranks::as-many-as-asked", "As many processes train as were asked for."),
        Statement("ranks::same-weights", "All processes have the same weights after each update."),
        Statement("ranks::rows-of-its-own", "Each process trains on rows of its own."),
    )

    def __init__(self, observer: Observer) -> None:
        super().__init__(observer)
        self.summary: dict[str, Any] = {"weights": {}, "rows": [], "where": None}
        """What the first rank compares with the others'."""
        self.rows: set[str] = set()

    def batch(self, event: Batch) -> None:
        if _several() and event.of.number == 1 and isinstance(event.indices, (list, tuple)) and len(self.rows) < 256:
            self.candidate = event, {row.hex() for row in rows_in(event.data, len(event.indices))}

    def backward(self, event: Any) -> None:
        batch, rows = getattr(self, "candidate", (None, set()))
        if batch is not None and event.batch is batch:
            self.rows |= rows
            self.summary |= {"rows": sorted(self.rows), "where": batch.where}

    def step(self, event: Step) -> None:
        if _several() and event.update <= 8:
            held = held_by(event.optimizer)
            self.summary["weights"][str(event.update)] = [checksum(held), event.where]

    def ends(self, _: None) -> None:
        if advice := fewer_than_asked():
            self.found(
                "ranks::as-many-as-asked",
                expected="several processes",
                observed="one",
                hint=advice,
            )

    def compare(self, summaries: Sequence[Mapping[str, Any]]) -> None:
        """Compare what the ranks did; the first summary is this rank's own."""
        first = summaries[0]
        for update, (own, where) in first["weights"].items():
            values = [each["weights"].get(update, [own])[0] for each in summaries]
            if len(set(values)) > 1:
                self.found(
                    "ranks::same-weights",
                    expected="the same weights on every rank",
                    observed=f"they differ between the {len(values)} ranks",
                    hint="Call the model that prepare() or DistributedDataParallel returned, not the one inside; start "
                    "from the same seed or checkpoint; clip and step on all ranks alike.",
                    where=where,
                    update=int(update),
                )
                break
        own_rows = set(first["rows"])
        for rank, each in enumerate(summaries[1:], start=1):
            common = own_rows & set(each["rows"])
            if own_rows and len(common) > HALF * min(len(own_rows), len(each["rows"])):
                self.found(
                    "ranks::rows-of-its-own",
                    expected="another part of the rows for each rank",
                    observed=f"{len(common)} of {len(own_rows)} rows of rank 0 are rank {rank}'s too",
                    hint="Prepare the training's DataLoader with the Accelerator, or give it a DistributedSampler.",
                    where=first["where"],
                    update=1,
                )
                break


def _several() -> bool:
    return torch.distributed.is_available() and torch.distributed.is_initialized()
